#include "compiler/float_function.h"

#include <stdlib.h>
#include <string.h>

#define SPACE "_ZN13__smelt_float"

/* A mangled symbol is _ZN13__smelt_float21__regcall3__fast_exp2Ef, or without the mark of the calling
 * convention. */
static bool is_symbol(const char *symbol, const char *name, unsigned arguments) {
    if (strncmp(symbol, SPACE, strlen(SPACE)) != 0) return false;
    char *at;
    size_t length = strtoul(symbol + strlen(SPACE), &at, 10);
    if (strncmp(at, REGCALL_MARK, strlen(REGCALL_MARK)) == 0) {
        at += strlen(REGCALL_MARK);
        length -= strlen(REGCALL_MARK);
    }
    return length == strlen(name) && strncmp(at, name, length) == 0 &&
           strcmp(at + length, arguments == 1 ? "Ef" : "Eff") == 0;
}

bool is_float_function(LLVMValueRef function, const char *name, unsigned arguments) {
    size_t length;
    return !LLVMIsDeclaration(function) && LLVMCountParams(function) == arguments &&
           is_symbol(LLVMGetValueName2(function, &length), name, arguments);
}
