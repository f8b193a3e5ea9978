/* Reports to the kernel's author: `smelt show --stage simd` and `--why`. */
#include "compiler/simd/simd.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Why a value differs between lanes. */

/* The reason why an instruction with uniform operands varies. */
static const char *origin_of(LLVMValueRef i) {
    switch (LLVMGetInstructionOpcode(i)) {
    case LLVMLoad:
        return "a value loaded from memory";
    case LLVMPHI:
        return "a value from paths or iterations that differ by lane";
    case LLVMSExt:
    case LLVMZExt:
        return "a narrower integer, widened, which may wrap around between lanes";
    case LLVMMul:
        return "the lane's number times a value known only at run time";
    case LLVMAlloca:
    case LLVMGetElementPtr:
        return "an address in a private array";
    case LLVMICmp:
    case LLVMFCmp:
        return "a comparison of the lanes' numbers";
    case LLVMAtomicRMW:
    case LLVMAtomicCmpXchg:
        return "the result of an atomic operation";
    case LLVMCall:
        return "the result of a simdgroup operation or a function";
    default:
        return "arithmetic on the lane's number";
    }
}

/* Follows varying operands to the origin of the variation. */
static LLVMValueRef varying_origin(struct simd *s, LLVMValueRef value) {
    for (int steps = 0; steps < 64; steps++) {
        if (LLVMIsALoadInst(value) || LLVMIsAPHINode(value)) return value;
        LLVMValueRef next = NULL;
        for (int o = 0; o < LLVMGetNumOperands(value) && !next; o++) {
            LLVMValueRef operand = LLVMGetOperand(value, (unsigned)o);
            if (LLVMIsAInstruction(operand) && shape_of(s, operand) == SHAPE_VARYING) next = operand;
        }
        if (!next) return value;
        value = next;
    }
    return value;
}

const char *report_varying(struct simd *s, LLVMValueRef value) {
    if (s->unit->request->output != COMPILE_WHY || !LLVMIsAInstruction(value)) return "";
    LLVMValueRef origin = varying_origin(s, value);
    unsigned line = remark_line(origin);
    const char *text = line ? arena_printf(&s->arena, "it depends on %s (line %u)", origin_of(origin), line)
                            : arena_printf(&s->arena, "it depends on %s", origin_of(origin));
    return text ? text : "";
}

/* ---- Control flow. */

void report_control_flow(struct simd *s) {
    for (int i = 0; i < s->paths.loop_count; i++) {
        const struct path_loop *loop = &s->paths.loops[i];
        if (!loop->divergent) continue;
        for (int place = loop->header; place <= loop->last; place++) {
            const struct path_block *block = &s->paths.blocks[place];
            LLVMValueRef branch = LLVMGetBasicBlockTerminator(block->block);
            if (!block->divergent || LLVMGetInstructionOpcode(branch) != LLVMBr) continue;
            simd_remark(s, branch, "masked loop: lanes leave it in different iterations; %s",
                        report_varying(s, LLVMGetCondition(branch)));
            break;
        }
    }
    for (int place = 0; place < s->paths.block_count; place++) {
        const struct path_block *block = &s->paths.blocks[place];
        LLVMValueRef branch = LLVMGetBasicBlockTerminator(block->block);
        bool in_loop = block->loop >= 0 && s->paths.loops[block->loop].divergent;
        if (!block->divergent || in_loop) continue;
        simd_remark(s, branch, "masked branch: both sides run where lanes differ; %s",
                    report_varying(s, LLVMGetInstructionOpcode(branch) == LLVMBr
                                          ? LLVMGetCondition(branch)
                                          : LLVMGetOperand(branch, 0)));
    }
}

/* ---- Texts. */

static void add(struct unit *unit, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct unit *unit, const char *format, ...) {
    char *old = unit->result->text, *piece = NULL, *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&piece, format, arguments);
    va_end(arguments);
    if (length < 0) return;
    size_t before = old ? strlen(old) : 0;
    text = realloc(old, before + (size_t)length + 1);
    if (text) {
        memcpy(text + before, piece, (size_t)length + 1);
        unit->result->text = text;
    }
    free(piece);
}

static void describe_gang(struct simd *s, const char *mark) {
    const char *missing = s->code->masked ? ", the last lanes may be missing" : "";
    int simdgroups = s->lanes / SIMDGROUP_LANES;
    if (s->chunk_lanes == 1)
        add(s->unit, "%sa gang is %d threads side by side, with vectors along each thread's own rows\n", mark,
            s->lanes);
    else
        add(s->unit,
            "%sa gang is %d threads (%d simdgroup%s) in %d vectors of %d lanes, %d-bit registers%s\n", mark,
            s->lanes, simdgroups, simdgroups == 1 ? "" : "s", s->chunk_count, s->chunk_lanes, s->vector_bits,
            missing);
}

void report_why(struct simd *s) {
    describe_gang(s, "");
    if (s->unit->because)
        add(s->unit,
            "less code than in its best form: loops are not unrolled on request, nothing is written "
            "twice; %s\n",
            s->unit->because);
    for (const struct remark *r = s->remarks; r; r = r->next) {
        if (r->file && r->line)
            add(s->unit, "%s:%u:%u: %s\n", r->file, r->line, r->column, r->text);
        else
            add(s->unit, "%s\n", r->text);
    }
    if (!s->remarks) add(s->unit, "all accesses are plain vectors, all control flow is uniform\n");
}

static void describe_shape(struct simd *s, int shape) {
    if (shape == SHAPE_VARYING) {
        add(s->unit, "varying");
        return;
    }
    if (shape <= SHAPE_UNIFORM) {
        add(s->unit, "uniform");
        return;
    }
    const int64_t *offsets = shape_offsets(s, shape);
    bool stride = true;
    for (int i = 1; i < s->lanes; i++) stride &= offsets[i] == i * offsets[1];
    if (stride) {
        add(s->unit, "affine, stride %lld", (long long)offsets[1]);
        return;
    }
    add(s->unit, "affine, offsets");
    for (int i = 0; i < s->lanes && i < 40; i++) add(s->unit, " %lld", (long long)offsets[i]);
    if (s->lanes > 40) add(s->unit, " ...");
}

void report_shapes(struct simd *s) {
    describe_gang(s, "; ");
    add(s->unit, "; ---- code of a thread, with the shape of each value\n");
    for (int place = 0; place < s->paths.block_count; place++) {
        const struct path_block *block = &s->paths.blocks[place];
        bool header = block->loop >= 0 && s->paths.loops[block->loop].header == place;
        add(s->unit, "; %s:%s%s%s\n", LLVMGetBasicBlockName(block->block),
            header ? s->paths.loops[block->loop].divergent ? " (masked loop)" : " (loop)" : "",
            s->blocks[place].mask_of == 0 ? "" : " (some lanes)",
            block->divergent ? " (divergent branch)" : "");
        FOR_EACH_INSTRUCTION(i, block->block) {
            char *text = LLVMPrintValueToString(i);
            add(s->unit, "; %s", text);
            if (LLVMGetTypeKind(LLVMTypeOf(i)) != LLVMVoidTypeKind) {
                add(s->unit, "   ; ");
                describe_shape(s, shape_of(s, i));
            }
            add(s->unit, "\n");
            LLVMDisposeMessage(text);
        }
    }
    add(s->unit, "; ---- code of a gang\n");
}

void report_gang(struct unit *unit) {
    char *text = LLVMPrintModuleToString(unit->module);
    add(unit, "%s", text);
    LLVMDisposeMessage(text);
}
