/* What smelt needs of a processor and its calling convention, beside code generation. The folder that is
 * named after the processor implements it; CMake takes the one of the machine that it builds for. */
#ifndef SMELT_DEVICE_CPU_ARCH_ARCH_H
#define SMELT_DEVICE_CPU_ARCH_ARCH_H

#include "base/error.h"
#include "base/text.h"

#include <ucontext.h>

/* Marks functions that enter on a fiber and return, through a signal frame, at home. */
#define NOT_COUNTED __attribute__((no_sanitize_thread))

/* In loops that wait. */
void arch_pause(void);

/* ---- Stacks (context.c). */

/* Puts the registers that calls preserve on the stack, keeps its pointer in *save, and goes on with the stack
 * `to`, where another call of this was left. */
void arch_switch(void **save, void *to);

/* The pointer of a stack that ends at `top`, at which arch_switch begins `main(argument)`, which does not
 * return. */
void *arch_prepare_stack(char *top, void (*main)(void *argument), void *argument);

/* ---- Signals (context.c). Safe in handlers and not instrumented. */

const void *arch_instruction(const ucontext_t *context);
const void *const *arch_stack(const ucontext_t *context);

/* When the handler returns, the arch_switch that left the stack `to` does. */
void arch_return_to(ucontext_t *context, void *to);

/* Is it what LLVM makes of a trap? NULL is none. */
bool arch_is_trap(const void *instruction);

/* What handlers return to that the system is told of directly (rt_sigaction's restorer). */
void arch_signal_return(void);

/* ---- Objects (object.c). */

#define ARCH_STUB_BYTES 16
extern const uint16_t arch_elf_machine;
extern const char arch_name[]; /* "x86-64" */

/* Room beside the code for one symbol: a jump to its address, and in the second half the address itself. */
void arch_write_stub(char *stub, const void *address);

struct arch_relocation {
    uint32_t type;
    int64_t addend;
    const char *symbol; /* its address */
    char *stub;         /* the symbol's */
    bool outside;       /* the symbol is not the object's: it may be far away */
    bool debug;         /* in a section that is not loaded for the code */
    char *place;
    size_t room; /* bytes in its section from there on */
};
/* SMELT_ERROR_FORMAT names what is wrong. */
smelt_status arch_relocate(const struct arch_relocation *relocation);

/* ---- What the machine can do, without asking LLVM (features.c). */

/* Levels of instruction sets, the highest first, ended by a NULL name. */
struct arch_level {
    const char *name;     /* as SMELT_CPU has it: "avx2" */
    const char *cpu;      /* as LLVM has it: "x86-64-v3" */
    const char *features; /* as below; what code for it may need */
    bool (*runs_here)(void);
};
extern const struct arch_level arch_levels[];

/* The instruction sets that this machine has of those that code generation uses unasked, by LLVM's names with
 * blanks between; `avoided`: also those that smelt's avoids. */
void arch_add_features(bool avoided, struct text *features);

/* What tells this CPU from others that need other code. */
#define ARCH_IDENTITY_WORDS 16
void arch_identity(uint32_t words[ARCH_IDENTITY_WORDS]);

#endif
