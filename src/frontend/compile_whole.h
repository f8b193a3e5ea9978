/* From a source to code with one start of smelt-cc1, which runs clang and then LLVM. It saves the second
 * start; the results, errors and limits are those of clang_run and of compile_process.h. */
#ifndef SMELT_FRONTEND_COMPILE_WHOLE_H
#define SMELT_FRONTEND_COMPILE_WHOLE_H

#include "abi/compiler.h"
#include "frontend/clang.h"

struct compile_whole {
    bool ok;              /* clang succeeded: `bitcode`, `status` and `result` are valid */
    struct text messages; /* clang's, otherwise */
    struct text bitcode;
    smelt_status status; /* of LLVM's half */
    struct compile_result result;
};

/* Whether `clang` is such a program, and LLVM's half would run in it as well. */
bool compile_whole_is_possible(const struct clang *clang);

/* `compile` without bitcode. Returns clang_run's errors; then `whole` holds nothing. */
smelt_status compile_whole_run(const struct clang *clang, const struct clang_request *source,
                               const struct compile_request *compile, struct compile_whole *whole);

#endif
