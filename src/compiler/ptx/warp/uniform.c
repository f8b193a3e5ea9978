/* Branches that all lanes of a warp take alike are marked as such in the PTX.
 *
 * NVIDIA's assembler knows few values to be the same in all lanes: not the simdgroup's index, which is the
 * thread's number divided by 32, and not what follows from it. Behind a branch that lanes may part at, each
 * shuffle, vote or product of matrices gets a second copy of code that brings them together first. In a loop
 * that a simdgroup leaves by a condition of its own, that doubles the kernel's code. Kernels without such
 * instructions have no second copies, and stay as they are.
 *
 * The condition of such a branch passes through an instruction that only copies it, and that the text names;
 * ptx_mark_uniform then finds the branch. Branches back to the start of a loop stay as they are.
 *
 * Requires: the module in its final form. */
#include "base/text.h"
#include "compiler/ptx/ptx.h"
#include "compiler/ptx/warp/divergence.h"

#include <string.h>

#define COPY "mov.pred"
#define MARK " // uniform"

static bool has_word(const char *text, size_t length, const char *word) {
    return memmem(text, length, word, strlen(word)) != NULL;
}

/* Shuffles, votes, reductions and products of matrices; neither barriers of the threadgroup, nor votes of
 * whichever lanes are there. */
static bool takes_whole_warp(LLVMValueRef call) {
    static const char *const WORDS[] = {"shfl.sync", "vote.", "redux.sync",
                                        "warp.sync", "mma.",  ".sync.aligned"};
    LLVMValueRef callee = LLVMIsACallInst(call) ? LLVMGetCalledValue(call) : NULL;
    if (!callee) return false;
    const char *text = called_name(call);
    size_t length = strlen(text);
    if (LLVMIsAInlineAsm(callee)) text = LLVMGetInlineAsmAsmString(callee, &length);
    if (has_word(text, length, "activemask")) return false;
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++) {
        if (has_word(text, length, WORDS[i])) return true;
    }
    return false;
}

static bool lanes_meet(struct unit *unit) {
    FOR_EACH_BLOCK(block, unit->entry) {
        FOR_EACH_INSTRUCTION(call, block) {
            if (takes_whole_warp(call)) return true;
        }
    }
    return false;
}

static bool is_conditional(LLVMValueRef branch) {
    return branch && LLVMIsABranchInst(branch) && LLVMIsConditional(branch) &&
           LLVMIsAInstruction(LLVMGetCondition(branch));
}

static void mark(struct unit *unit, LLVMValueRef branch) {
    LLVMValueRef condition = LLVMGetCondition(branch);
    LLVMPositionBuilderBefore(unit->builder, branch);
    LLVMSetCondition(branch, ptx_assembly(unit, COPY " $0, $1;" MARK, "=b,b", LLVMTypeOf(condition),
                                          &condition, 1, false));
}

smelt_status pass_ptx_uniform(struct unit *unit) {
    if (!lanes_meet(unit)) return SMELT_OK;
    struct divergence d = {0};
    smelt_status status = divergence_find_lowered(unit, &d);
    for (int i = 0; status == SMELT_OK && !d.irreducible && i < d.graph.block_count; i++) {
        LLVMValueRef branch = LLVMGetBasicBlockTerminator(d.graph.blocks[i].block);
        if (is_conditional(branch) && !divergence_in_operand(&d, LLVMGetCondition(branch), i))
            mark(unit, branch);
    }
    divergence_free(&d);
    return status;
}

/* ---- The text. */

/* The end of the instruction's name in a line that is a branch on this register; NULL: it is another line. */
static const char *branch_on(const char *line, const char *name, int length) {
    if (strncmp(line, "\t@", 2) != 0) return NULL;
    line += 2;
    line += *line == '!';
    if (strncmp(line, name, (size_t)length) != 0) return NULL;
    line += length;
    line += strspn(line, " \t");
    return strncmp(line, "bra", 3) == 0 && strchr(" \t", line[3]) ? line + 3 : NULL;
}

static bool leads_ahead(const char *branch) {
    const char *label = branch + strspn(branch, " \t");
    int length = (int)strcspn(label, "; \n");
    for (const char *at = branch; (at = strchr(at, '\n')); at++)
        if (strncmp(at + 1, label, (size_t)length) == 0 && at[1 + length] == ':') return true;
    return false;
}

void ptx_mark_uniform(struct text *out, const char *ptx) {
    const char *name = NULL, *branch;
    int length = 0;
    text_reserve(out, strlen(ptx));
    while (*ptx) {
        size_t line = strcspn(ptx, "\n"), kept = line;
        size_t marked = line > sizeof MARK - 1 ? line - (sizeof MARK - 1) : 0;
        if (marked && strncmp(ptx + marked, MARK, sizeof MARK - 1) == 0 &&
            strncmp(ptx, "\t" COPY " ", sizeof COPY + 1) == 0) {
            kept = marked;
            name = ptx + sizeof COPY + 1;
            length = (int)strcspn(name, ",");
        }
        if (name && (branch = branch_on(ptx, name, length)) && leads_ahead(branch))
            text_addf(out, "%.*s.uni%.*s", (int)(branch - ptx), ptx, (int)(ptx + line - branch), branch);
        else
            text_append(out, ptx, kept);
        ptx += line;
        if (*ptx) text_append(out, ptx++, 1);
    }
}
