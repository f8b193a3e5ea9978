#include "device/cpu/leave.h"

/* In RFLAGS: string instructions go backward. Functions rely on its being clear. */
#define DIRECTION_FLAG 0x400

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
    struct fiber_escape escape = fiber_escape(&worker->home);
    context->uc_mcontext.gregs[REG_RIP] = (greg_t)escape.instruction_pointer;
    context->uc_mcontext.gregs[REG_RSP] = (greg_t)escape.stack_pointer;
    context->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)DIRECTION_FLAG;
}
