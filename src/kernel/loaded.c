#include "kernel/loaded.h"
#include "base/interrupt.h"

static smelt_status wait_for_all(const struct loaded *loaded) {
    for (; loaded; loaded = loaded->next) TRY(executable_wait(loaded->executable));
    return SMELT_OK;
}

smelt_status loaded_wait(struct loaded_list *list, const char *name, smelt_interrupt *interrupt) {
    pthread_mutex_lock(&list->lock);
    const struct loaded *first = list->first;
    pthread_mutex_unlock(&list->lock);
    smelt_interrupt *outer = interrupt_begin_call(interrupt);
    smelt_status status = wait_for_all(first);
    interrupt_end_call(outer);
    return interrupt_status(name, status);
}
