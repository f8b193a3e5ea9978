/* How large code may become, and what is given up past that. Only sizes decide, never time or load, so a
 * source always gets the same code.
 *
 * A kernel is compiled in its best form first. If a measure exceeds its budget, compilation starts again in
 * the plain form, which results in less code: loops are not unrolled because the source asks for it, nothing
 * is written twice (full rounds, speculation), and a gang is one simdgroup. Past the budget in that form,
 * too, the SIMD engine refuses the kernel, and the scalar engine runs it. The scalar engine has no budget
 * that ends in an error: it keeps large functions as calls, and large code is generated without optimisation.
 *
 * On GPUs a thread's code has one budget. Past it, loops are not unrolled (the plain form). If the source
 * asks to unroll none, or the plain form is too large as well, long functions on integers stay functions.
 *
 * What is too large once it is optimised, or only as vector code, is not optimised again: if the plain form
 * would have the same code of a thread, or is exceeded too, the next form is made of that code.
 *
 * All forms compute the same bits. */
#ifndef SMELT_COMPILER_BUDGET_H
#define SMELT_COMPILER_BUDGET_H

#include "compiler/pass.h"

enum budget {
    BUDGET_INLINED,  /* instructions of the kernel with all its functions inlined */
    BUDGET_CERTAIN,  /* … once its functions are optimised, times the registers of a simdgroup's value */
    BUDGET_UNROLLED, /* … with its loops unrolled on request, before they are optimised */
    BUDGET_COPIES,   /* … if its functions are optimised first, times the registers of a simdgroup's value */
    BUDGET_THREAD,   /* instructions of a thread, times the registers of a simdgroup's value */
    BUDGET_BLOCKS,   /* blocks of a thread, times the same */
    BUDGET_GANG,     /* instructions of a gang */
    BUDGET_WRITTEN,  /* … as the vectoriser writes them, before LLVM removes up to half of them */
    BUDGET_SLOTS,    /* masks and values that several blocks of a gang use, times the gang's blocks */
    BUDGET_GPU,      /* instructions of a GPU's thread, whose loops the source asks to unroll */
    BUDGET_GPU_CERTAIN /* … with everything inlined, once its functions are optimised */
};

/* Compiling one instruction of a gang takes 0.1 to 0.2 ms. These are some 5 seconds, too. */
#define MOST_INSTRUCTIONS_OPTIMISED 30000 /* of scalar code: code generation optimises up to this */
/* … of a checked run: the checker takes most of its time, so optimising the rest gains little. */
#define MOST_CHECKED_INSTRUCTIONS_OPTIMISED 8000
#define LONG_THREAD 20000 /* instructions: longer threads are optimised without default<O3> */
/* Loops within one another: LLVM's loop passes look at a loop once more for each loop around it. */
#define DEEP_LOOPS 10
/* Loops of a CPU's thread whose number of rounds is not known before the run. For each loop that they change,
 * LLVM's loop passes update the dominators of all code after it. */
#define MANY_OPEN_LOOPS 500
#define LONG_BLOCK 6000 /* instructions: cut.c cuts blocks of more … */
#define CUT_BLOCK 1000  /* … into pieces of about so many */
/* Instructions of a GPU's code: above this number, PTX is generated without optimisation and has some
 * more instructions. */
#define LONGEST_OPTIMISED 100000
/* … unless its variables take more bytes: without optimisation, each keeps memory of its own. */
#define MOST_UNSHARED 4096
#define MANY_BLOCKS 600 /* of a GPU's thread: of more, code is generated without global value numbering */

/* SMELT_OK if the size fits. Otherwise unit->smaller is set, or unit->refused in the plain form, with a
 * message that has the measure, the size and the limit. */
smelt_status budget_check(struct unit *unit, enum budget budget, uint64_t size);

/* Adds to the image's `reduced` what a size above its limit costs, `less`, with the measure, the size and the
 * limit. */
smelt_status budget_reduce(struct unit *unit, const char *less, const char *measure, uint64_t size,
                           uint64_t limit);

/* Of a thread before it is optimised, with everything inlined: whether it is certainly too large. */
smelt_status budget_check_inlined(struct unit *unit, uint64_t instructions);

/* … with its loops unrolled on request. */
bool budget_fits_unrolled(struct unit *unit, uint64_t instructions);
smelt_status budget_check_unrolled(struct unit *unit, uint64_t instructions);

/* Of the entry, instructions and blocks: before any vector code is written, as that does not grow in
 * proportion. */
smelt_status budget_check_thread(struct unit *unit);

/* Whether a gang's code may exceed its budget: as a rule it has one to three instructions for each of the
 * thread's in each register. */
bool budget_is_near(struct unit *unit);

/* *is: whether default<O3> would take too long for the thread, which is not optimised yet. If so, adds that
 * to the image's `reduced`. */
smelt_status budget_find_long(struct unit *unit, bool *is);

/* Instructions of a function, and its blocks. */
uint64_t budget_count(LLVMValueRef function, uint64_t *blocks);

/* Instructions of all functions. */
uint64_t budget_count_all(LLVMModuleRef module);

#endif
