/* The properties of a processor and its calling convention, except code generation. The folder named after
 * the processor implements them; CMake selects that of the target machine. */
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

/* Puts the registers that calls preserve on the stack, keeps its pointer in *save, and continues on the stack
 * `to`, where another call of this function stopped. */
void arch_switch(void **save, void *to);

/* The pointer of a stack that ends at `top`, at which arch_switch begins `main(argument)`, which does not
 * return. */
void *arch_prepare_stack(char *top, void (*main)(void *argument), void *argument);

/* ---- Signals (context.c). Safe in handlers and not instrumented. */

const void *arch_instruction(const ucontext_t *context);
const void *const *arch_stack(const ucontext_t *context);

/* When the handler returns, the arch_switch that left the stack `to` does. */
void arch_return_to(ucontext_t *context, void *to);

/* Whether this is LLVM's trap instruction; false for NULL. */
bool arch_is_trap(const void *instruction);

/* The return address of handlers that are installed by system call (rt_sigaction's restorer). */
void arch_signal_return(void);

/* ---- Objects (object.c). */

#define ARCH_STUB_BYTES 16
extern const uint16_t arch_elf_machine;
extern const char arch_name[]; /* "x86-64" */

/* Space next to the code for one symbol: a jump to its address, and in the second half the address itself. */
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
/* SMELT_ERROR_FORMAT names the error. */
smelt_status arch_relocate(const struct arch_relocation *relocation);

/* ---- The machine's instruction sets, without LLVM (features.c). */

/* Levels of instruction sets, the highest first, ended by a NULL name. */
struct arch_level {
    const char *name;     /* as SMELT_CPU has it: "avx2" */
    const char *cpu;      /* as LLVM has it: "x86-64-v3" */
    const char *features; /* as below; what code for it may need */
};
extern const struct arch_level arch_levels[];

/* Whether this machine has the level's instruction sets. */
bool arch_runs_level(const struct arch_level *level);

/* This machine's instruction sets among those that code generation uses by default, by LLVM's names separated
 * by blanks; `avoided`: also those that smelt avoids. */
void arch_add_features(bool avoided, struct text *features);

/* A description that distinguishes this CPU from others that need other code. */
#define ARCH_IDENTITY_WORDS 16
void arch_identity(uint32_t words[ARCH_IDENTITY_WORDS]);

#endif
