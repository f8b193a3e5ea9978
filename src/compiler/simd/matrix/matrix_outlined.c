/* Functions for products of matrices in quick code (compiler/quick.h).
 *
 * A product is 64 rows of multiply-adds in any order of elements, and a kernel that unrolls its loops over
 * matrices has dozens of products: most of its vector code. Quick code has these instructions once, in a
 * function, so it is as quick to generate with products as without. The function computes each element with
 * the instructions of the best code in the same order, so the bits are the same. */
#include "compiler/simd/matrix/matrix.h"

#include <llvm-c/DebugInfo.h>
#include <string.h>

bool simd_matrix_is_outlined(const struct simd *s) {
    return s->unit->result->image.quick;
}

static LLVMValueRef declare(struct unit *unit, const char *name, LLVMTypeRef type) {
    static const char *const attributes[] = {"noinline", "nounwind", "willreturn", "nosync", "nofree"};
    LLVMValueRef function = LLVMAddFunction(unit->module, name, type);
    LLVMSetLinkage(function, LLVMInternalLinkage);
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        unsigned kind = LLVMGetEnumAttributeKindForName(attributes[i], strlen(attributes[i]));
        LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                LLVMCreateEnumAttribute(unit->context, kind, 0));
    }
    return function;
}

static void define(struct simd *s, LLVMValueRef function, matrix_body *write, unsigned results) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMBasicBlockRef caller = LLVMGetInsertBlock(b);
    LLVMMetadataRef line = LLVMGetCurrentDebugLocation2(b);
    LLVMValueRef parameters[MATRIX_MOST_VECTORS], written[MATRIX_MOST_VECTORS];
    LLVMGetParams(function, parameters);
    LLVMPositionBuilderAtEnd(b, LLVMAppendBasicBlockInContext(s->unit->context, function, ""));
    LLVMSetCurrentDebugLocation2(b, NULL);
    write(s, parameters, written);
    LLVMBuildAggregateRet(b, written, results);
    LLVMPositionBuilderAtEnd(b, caller);
    LLVMSetCurrentDebugLocation2(b, line);
}

void simd_matrix_call(struct simd *s, const char *name, matrix_body *write, LLVMValueRef *arguments,
                      unsigned count, LLVMValueRef *results, unsigned result_count) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef types[MATRIX_MOST_VECTORS], result_types[MATRIX_MOST_VECTORS];
    for (unsigned n = 0; n < count; n++) types[n] = LLVMTypeOf(arguments[n]);
    for (unsigned n = 0; n < result_count; n++) result_types[n] = types[count - 1];
    LLVMTypeRef all = LLVMStructTypeInContext(s->unit->context, result_types, result_count, false);
    LLVMTypeRef type = LLVMFunctionType(all, types, count, false);
    LLVMValueRef function = LLVMGetNamedFunction(s->unit->module, name);
    if (!function) {
        function = declare(s->unit, name, type);
        define(s, function, write, result_count);
    }
    LLVMValueRef call = LLVMBuildCall2(b, type, function, arguments, count, "");
    for (unsigned n = 0; n < result_count; n++) results[n] = LLVMBuildExtractValue(b, call, n, "");
}
