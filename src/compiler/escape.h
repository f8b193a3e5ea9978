/* The way out of LLVM when it would end the process. LLVM ends the process on fatal errors, and a few of its
 * passes crash on code that is right; neither may take the host with it. A compile is left from within then,
 * and LLVM's resources are lost: memory, at worst a lock, which the compiler's time limit covers. */
#ifndef SMELT_COMPILER_ESCAPE_H
#define SMELT_COMPILER_ESCAPE_H

#include <setjmp.h>

struct escape {
    sigjmp_buf
        place; /* set it by sigsetjmp(place, 1) before escape_begin; reached a second time with `reason` */
    char reason[512];
    void *stack; /* its signals' */
};

/* Once, before LLVM works. Signals that are not LLVM's go to the handlers that were there before. */
void escape_install(void);

/* From here to escape_end, on this thread, LLVM's ends lead to `escape`; these do not nest. */
void escape_begin(struct escape *escape);
void escape_end(struct escape *escape);

#endif
