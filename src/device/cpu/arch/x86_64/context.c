/* Stacks and the contexts of signals. The six registers that calls preserve by the System V ABI travel on the
 * stack. */
#include "device/cpu/arch/arch.h"

#include <string.h>

/* In RFLAGS: string instructions go backward. Functions rely on its being clear. */
#define DIRECTION_FLAG 0x400

void arch_resume(void) __attribute__((visibility("hidden")));
void arch_entry(void) __attribute__((visibility("hidden")));

__asm__(".text\n"
        ".p2align 4\n"
        ".hidden arch_switch\n"
        ".type arch_switch, @function\n"
        ".globl arch_switch\n"
        "arch_switch:\n"
        "  pushq %rbp\n"
        "  pushq %rbx\n"
        "  pushq %r12\n"
        "  pushq %r13\n"
        "  pushq %r14\n"
        "  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        ".hidden arch_resume\n"
        ".globl arch_resume\n"
        "arch_resume:\n"
        "  popq %r15\n"
        "  popq %r14\n"
        "  popq %r13\n"
        "  popq %r12\n"
        "  popq %rbx\n"
        "  popq %rbp\n"
        "  ret\n"
        ".size arch_switch, .-arch_switch\n"
        /* A new fiber: r12 holds its main function, r13 the argument. */
        ".hidden arch_entry\n"
        ".globl arch_entry\n"
        ".type arch_entry, @function\n"
        "arch_entry:\n"
        "  movq %r13, %rdi\n"
        "  xorl %ebp, %ebp\n"
        "  callq *%r12\n"
        "  ud2\n"
        ".size arch_entry, .-arch_entry\n"
        ".hidden arch_signal_return\n"
        ".globl arch_signal_return\n"
        "arch_signal_return:\n"
        "  movq $15, %rax\n"
        "  syscall\n");

/* Seven words are popped on the way to arch_entry, which calls with the stack aligned to 16 bytes. */
void *arch_prepare_stack(char *top, void (*main)(void *), void *argument) {
    void **frame = (void **)(top - 16 - 7 * sizeof(void *));
    frame[0] = NULL;                       /* r15 */
    frame[1] = NULL;                       /* r14 */
    frame[2] = argument;                   /* r13 */
    memcpy(&frame[3], &main, sizeof main); /* r12 */
    frame[4] = NULL;                       /* rbx */
    frame[5] = NULL;                       /* rbp */
    void (*entry)(void) = arch_entry;
    memcpy(&frame[6], &entry, sizeof entry);
    frame[7] = NULL;
    return frame;
}

void arch_pause(void) {
    __builtin_ia32_pause();
}

NOT_COUNTED const void *arch_instruction(const ucontext_t *context) {
    return (const void *)context->uc_mcontext.gregs[REG_RIP];
}

NOT_COUNTED const void *const *arch_stack(const ucontext_t *context) {
    return (const void *const *)context->uc_mcontext.gregs[REG_RSP];
}

NOT_COUNTED void arch_return_to(ucontext_t *context, void *to) {
    context->uc_mcontext.gregs[REG_RIP] = (greg_t)arch_resume;
    context->uc_mcontext.gregs[REG_RSP] = (greg_t)to;
    context->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)DIRECTION_FLAG;
}

/* ud2 or ud1. */
bool arch_is_trap(const void *instruction) {
    const unsigned char *bytes = instruction;
    return bytes && bytes[0] == 0x0f && (bytes[1] == 0x0b || bytes[1] == 0xb9);
}
