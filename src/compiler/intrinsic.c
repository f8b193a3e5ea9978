#include "compiler/intrinsic.h"

#include <string.h>

#define PREFIX_LENGTH (sizeof INTRINSIC_PREFIX - 1)
#define TRAITS(enumerator, name, purity, convergence, kind) \
    [INTRINSIC_##enumerator] = {INTRINSIC_PREFIX #name, purity, convergence, kind},
#define LENGTH(enumerator, name, purity, convergence, kind) \
    [INTRINSIC_##enumerator] = sizeof INTRINSIC_PREFIX #name - 1,

static const struct intrinsic_traits table[INTRINSIC_UNKNOWN + 1] = {
    [INTRINSIC_NONE] = {"", ORDERED, TOGETHER, NOT_INTRINSIC},
    INTRINSICS(TRAITS)[INTRINSIC_UNKNOWN] = {INTRINSIC_PREFIX, APART, TOGETHER, OF_PASS}};
static const unsigned char lengths[INTRINSIC_UNKNOWN + 1] = {INTRINSICS(LENGTH)};

const struct intrinsic_traits *intrinsic_traits(enum intrinsic intrinsic) {
    return &table[intrinsic];
}

static bool has_name(enum intrinsic i, const char *name, size_t length) {
    bool family = table[i].name[lengths[i] - 1] == '_';
    return (family ? length > lengths[i] : length == lengths[i]) &&
           memcmp(name, table[i].name, lengths[i]) == 0;
}

enum intrinsic intrinsic_of_function(LLVMValueRef function) {
    size_t length;
    const char *name = LLVMGetValueName2(function, &length);
    if (length < PREFIX_LENGTH || memcmp(name, INTRINSIC_PREFIX, PREFIX_LENGTH) != 0) return INTRINSIC_NONE;
    enum intrinsic i = INTRINSIC_NONE + 1;
    while (i < INTRINSIC_UNKNOWN && !has_name(i, name, length)) i++;
    return i;
}

enum intrinsic intrinsic_of(LLVMValueRef value) {
    LLVMValueRef callee = LLVMIsACallInst(value) ? LLVMGetCalledValue(value) : NULL;
    return callee && LLVMIsAFunction(callee) ? intrinsic_of_function(callee) : INTRINSIC_NONE;
}

bool intrinsic_called(LLVMValueRef value) {
    return intrinsic_of(value) != INTRINSIC_NONE;
}

bool intrinsic_is_of_simdgroup(enum intrinsic intrinsic) {
    return table[intrinsic].kind == OF_SIMDGROUP || intrinsic == INTRINSIC_SIMDGROUP_BARRIER;
}

bool intrinsic_in_block(LLVMBasicBlockRef block, enum intrinsic intrinsic) {
    LLVMValueRef i = LLVMGetFirstInstruction(block);
    while (i && intrinsic_of(i) != intrinsic) i = LLVMGetNextInstruction(i);
    return i != NULL;
}

bool intrinsic_in_function(LLVMValueRef function, enum intrinsic intrinsic) {
    LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function);
    while (block && !intrinsic_in_block(block, intrinsic)) block = LLVMGetNextBasicBlock(block);
    return block != NULL;
}

LLVMValueRef intrinsic_function(LLVMModuleRef module, enum intrinsic intrinsic) {
    return LLVMGetNamedFunction(module, table[intrinsic].name);
}

LLVMValueRef intrinsic_declare(LLVMModuleRef module, enum intrinsic intrinsic, LLVMTypeRef type) {
    LLVMValueRef function = intrinsic_function(module, intrinsic);
    return function ? function : LLVMAddFunction(module, table[intrinsic].name, type);
}
