#include "device/code_list.h"

#include <string.h>

void code_list_open(struct code_list *list) {
    pthread_mutex_init(&list->lock, NULL);
    atomic_init(&list->first, NULL);
}

void code_list_close(struct code_list *list, void (*release)(struct code_head *code)) {
    for (struct code_head *code = atomic_load(&list->first), *next; code; code = next) {
        next = code->next;
        release(code);
    }
    pthread_mutex_destroy(&list->lock);
}

struct code_head *code_list_find(struct code_list *list, const struct code_shape *shape) {
    struct code_head *code = atomic_load_explicit(&list->first, memory_order_acquire);
    while (code && memcmp(&code->shape, shape, sizeof *shape) != 0) code = code->next;
    return code;
}

struct code_head *code_list_add(struct code_list *list, struct code_head *made,
                                void (*release)(struct code_head *code)) {
    pthread_mutex_lock(&list->lock);
    struct code_head *found = code_list_find(list, &made->shape);
    if (!found) {
        made->next = atomic_load(&list->first);
        atomic_store_explicit(&list->first, made, memory_order_release);
    }
    pthread_mutex_unlock(&list->lock);
    if (found) release(made);
    return found ? found : made;
}

void preparation_note(struct preparation *preparation, bool cache_hit) {
    if (!preparation) return;
    preparation->cache_hit = cache_hit && (preparation->cache_hit || !preparation->compiled);
    preparation->compiled = true;
}
