/* Adds tests to the code of checked runs, before instructions that a whole warp must execute
 * (`.sync.aligned`).
 *
 * A lane whose access fails a test sets `found` and ends alone (inside.c). The other lanes of its warp would
 * then wait for it at a product of matrices, or compute with what it left. So the remaining lanes wait for
 * each other here, and end together if an access of the launch has failed a test.
 *
 * Requires: the module in its final form, before code generation. */
#include "abi/cuda_parameters.h"
#include "base/text.h"
#include "compiler/ptx/ptx.h"

#include <stddef.h>
#include <string.h>

_Static_assert(offsetof(struct cuda_stop, found) == 4, "the assembly reads it there");

/* %u: the operand that has the address of the struct cuda_stop. All lanes come to the same decision. */
#define END_TOGETHER                        \
    "{ .reg .pred p, q; .reg .b32 r; "      \
    "bar.warp.sync 0xffffffff; "            \
    "ld.volatile.global.u32 r, [$%u+4]; "   \
    "setp.ne.u32 p, r, 0; "                 \
    "vote.sync.any.pred q, p, 0xffffffff; " \
    "@q exit; }\n"

/* A thread that has ended may not have begun the copies for which others wait in a loop (instructions.c). The
 * test stands after the loop's exit, and uses the loop's predicate `q`. */
#define WAIT "mbarrier.try_wait"
#define WAIT_OVER "@p bra done;\n"
#define END_WAIT "{ .reg .b32 r; ld.volatile.global.u32 r, [$%u+4]; setp.ne.u32 q, r, 0; @q exit; }\n"

/* NULL if the instruction is not a call of assembly. */
static const char *text_of(LLVMValueRef call, size_t *length) {
    LLVMValueRef callee = LLVMIsACallInst(call) ? LLVMGetCalledValue(call) : NULL;
    return callee && LLVMIsAInlineAsm(callee) ? LLVMGetInlineAsmAsmString(callee, length) : NULL;
}

static bool contains(LLVMValueRef call, const char *part) {
    size_t length;
    const char *text = text_of(call, &length);
    return text && memmem(text, length, part, strlen(part));
}

static LLVMValueRef stop_of(struct unit *unit) {
    LLVMValueRef first = LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(unit->entry));
    while (LLVMIsAAllocaInst(first)) first = LLVMGetNextInstruction(first);
    LLVMPositionBuilderBefore(unit->builder, first);
    return ptx_parameter(unit, type_i64(unit), offsetof(struct cuda_parameters, stop));
}

/* Adds the constraints with one more operand, before the clobbers. */
static void add_constraints(struct text *text, const char *constraints, size_t length) {
    const char *clobbers = memmem(constraints, length, "~{", 2);
    size_t before = clobbers ? (size_t)(clobbers - constraints) : length;
    bool comma = before && constraints[before - 1] != ',';
    text_addf(text, "%.*s%sl%s%.*s", (int)before, constraints, comma ? "," : "", clobbers ? "," : "",
              (int)(length - before), constraints + before);
}

static unsigned count_results(const char *constraints, size_t length) {
    unsigned count = 0;
    for (size_t i = 0; i < length; i++) count += constraints[i] == '=';
    return count;
}

/* Test and instruction are one piece of assembly, so no pass can move the instruction before the test. */
static smelt_status end_at(struct unit *unit, LLVMValueRef call, LLVMValueRef stop) {
    LLVMValueRef callee = LLVMGetCalledValue(call), arguments[ASSEMBLY_MAX_OPERANDS];
    unsigned count = LLVMGetNumArgOperands(call);
    size_t length, constraint_length;
    const char *instruction = LLVMGetInlineAsmAsmString(callee, &length);
    const char *given = LLVMGetInlineAsmConstraintString(callee, &constraint_length);
    struct text text = {0}, constraints = {0};
    if (count >= ASSEMBLY_MAX_OPERANDS) return SMELT_OK; /* wgmma: the test is in the fence before it */
    for (unsigned i = 0; i < count; i++) arguments[i] = LLVMGetOperand(call, i);
    arguments[count] = stop;
    unsigned operand = count_results(given, constraint_length) + count;
    const char *over = memmem(instruction, length, WAIT_OVER, strlen(WAIT_OVER));
    size_t before = over ? (size_t)(over - instruction) + strlen(WAIT_OVER) : 0;
    text_append(&text, instruction, before);
    if (over)
        text_addf(&text, END_WAIT, operand);
    else
        text_addf(&text, END_TOGETHER, operand);
    text_append(&text, instruction + before, length - before);
    add_constraints(&constraints, given, constraint_length);
    LLVMPositionBuilderBefore(unit->builder, call);
    bool has_result = LLVMGetTypeKind(LLVMTypeOf(call)) != LLVMVoidTypeKind;
    LLVMValueRef tested = ptx_assembly(unit, text_string(&text), text_string(&constraints),
                                       has_result ? LLVMTypeOf(call) : NULL, arguments, count + 1, true);
    LLVMReplaceAllUsesWith(call, tested);
    LLVMInstructionEraseFromParent(call);
    bool failed = text.failed || constraints.failed;
    text_free(&text);
    text_free(&constraints);
    return failed ? unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for a test of a warp") : SMELT_OK;
}

smelt_status pass_ptx_together(struct unit *unit) {
    if (!unit->request->shape.tested) return SMELT_OK;
    LLVMValueRef stop = NULL;
    FOR_EACH_BLOCK(block, unit->entry) {
        bool whole = false; /* no lane can have ended since the last test of the block */
        FOR_EACH_INSTRUCTION(call, block) {
            bool waits = contains(call, WAIT);
            if (contains(call, "exit;")) whole = false;
            if (!waits && (!contains(call, ".sync.aligned") || whole)) continue;
            if (!stop) stop = stop_of(unit);
            TRY(end_at(unit, call, stop));
            whole = !waits;
        }
    }
    return SMELT_OK;
}
