/* Quick code, for kernels whose best code takes long to compile. */
#ifndef SMELT_COMPILER_QUICK_H
#define SMELT_COMPILER_QUICK_H

#include "compiler/pass.h"

/* Whether the request, for IR that is optimised and not lowered yet, gets quick code: the effort allows it,
 * the engine has some, the IR is large enough, and both codes give the same bits. Depends on nothing else. */
bool quick_applies(struct unit *unit);

/* Whether all code of the module gives the same bits: no arithmetic is relaxed, and no atomic operations have
 * results that depend on the order of threads. */
bool quick_gives_same_bits(struct unit *unit);

/* Before lowering: whether the kernel is so large that its quick code must come from the engine `instead`. */
bool quick_needs_other_engine(struct unit *unit);

/* After lowering `optimised` to its best form: whether its vector code has turned out so large that the
 * request gets quick code after all. */
bool quick_suits_gang(struct unit *unit, LLVMModuleRef optimised);

/* After lowering `optimised`: whether its quick code has turned out too large. */
bool quick_is_too_large(struct unit *unit, LLVMModuleRef optimised);

#endif
