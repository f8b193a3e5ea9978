#include "device/cpu/leave.h"

NOT_COUNTED bool leave_in_code(const struct worker *worker, const void *address) {
    const struct object *object = &worker->code->object;
    const char *p = address;
    return p >= object->code && p < object->code + object->code_size;
}

NOT_COUNTED bool leave_on_fiber(const struct worker *worker, const void *stack_pointer) {
    const char *p = stack_pointer, *low = worker->running->stack;
    return p >= low && p < low + worker->running->stack_bytes;
}

NOT_COUNTED void leave_kernel(struct worker *worker, ucontext_t *context, int ended) {
    worker->ended = ended;
    arch_return_to(context, fiber_escape(&worker->home));
}
