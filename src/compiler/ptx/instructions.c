/* Instructions of NVIDIA's GPUs that the prelude calls by name (smelt_dialect.h): __smelt_ptx_NAME becomes
 * inline assembly.
 *
 * Requires: the retargeted module. Establishes: no such intrinsic is left. */
#include "base/text.h"
#include "compiler/ptx/warp/lanes.h"
#include "compiler/ptx/ptx.h"

#include <stdio.h>
#include <string.h>

/* A lost copy ends in an error, not in a hang: a wait that lasts this many tries traps. */
#define MOST_TRIES "0x4000000"

/* One whole simdgroup fills 128 bytes of threadgroup memory with zeros; lane 0 sets the fields of the map,
 * and all copy it to the device's memory. Operands: map, scratch, data, width, height, stride, box width, box
 * height, type of the elements; of several matrices then their number and distance. */
#define FIELD(field, type, value) \
    "@p tensormap.replace.tile." field ".shared::cta.b1024." type " [$1], " value ";\n"
#define TENSOR_MAP(last_dimension, third)                                                               \
    "{ .reg .pred p; .reg .b32 l, a; mov.u32 l, %laneid; shl.b32 a, l, 2; add.u32 a, a, $1;\n"          \
    "st.shared.b32 [a], 0; bar.warp.sync 0xffffffff; setp.eq.u32 p, l, 0;\n"      /* */                 \
        FIELD("global_address", "b64", "$2") FIELD("rank", "b32", last_dimension) /* */                 \
        FIELD("box_dim", "b32", "0, $6") FIELD("box_dim", "b32", "1, $7")         /* */                 \
        FIELD("global_dim", "b32", "0, $3") FIELD("global_dim", "b32", "1, $4")   /* */                 \
        FIELD("global_stride", "b64", "0, $5")                                    /* bytes */           \
        FIELD("element_stride", "b32", "0, 1")                                                          \
            FIELD("element_stride", "b32", "1, 1") /* */ third FIELD("elemtype", "b32", "$8")           \
                FIELD("interleave_layout", "b32", "0")                   /* none */                     \
        FIELD("swizzle_mode", "b32", "3") FIELD("fill_mode", "b32", "0") /* 128 bytes; zeros */         \
        "bar.warp.sync 0xffffffff;\n"                                                                   \
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [$0], " \
        "[$1], 128; "                                                                                   \
        "}"
static const char tensor_map[] = TENSOR_MAP("1", "");
static const char tensor_map_of[] =
    TENSOR_MAP("2", FIELD("box_dim", "b32", "2, 1") FIELD("global_dim", "b32", "2, $9")
                        FIELD("global_stride", "b64", "1, $10") FIELD("element_stride", "b32", "2, 1"));

#define IF_ACTIVE(operand) "{ .reg .pred p; setp.ne.u32 p, $" operand ", 0;\n@p "

static const struct instruction {
    const char *name, *text, *constraints;
} instructions[] = {
    {"barrier_init", "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r"},
    {"barrier_end", "mbarrier.inval.shared::cta.b64 [$0];", "r"},
    {"barrier_arrive", IF_ACTIVE("1") "mbarrier.arrive.shared::cta.b64 _, [$0]; }", "r,r"},
    {"barrier_expect", IF_ACTIVE("2") "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1; }", "r,r,r"},
    {"barrier_wait",
     "{ .reg .pred p, q; .reg .b32 n; mov.b32 n, 0;\nagain: mbarrier.try_wait.parity.shared::cta.b64 p, "
     "[$0], $1;\n"
     "@p bra done;\nadd.u32 n, n, 1; setp.gt.u32 q, n, " MOST_TRIES "; @q trap;\nbra again;\ndone:\n}",
     "r,r"},
    {"store_shared", "st.shared.v4.b32 [$0], {$1, $2, $3, $4};", "r,r,r,r,r"},
    {"copy_4", "cp.async.ca.shared.global [$0], [$1], 4, $2;", "r,l,r"},
    {"copy_8", "cp.async.ca.shared.global [$0], [$1], 8, $2;", "r,l,r"},
    {"copy_16", "cp.async.cg.shared.global [$0], [$1], 16, $2;", "r,l,r"},
    {"prefetch", IF_ACTIVE("2") "cp.async.bulk.prefetch.L2.global [$0], $1; }", "l,r,r"},
    {"copy_wait", "cp.async.wait_all;", ""},
    {"copy_arrive", "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [$0];", "r"},
    {"copy_commit", "cp.async.commit_group;", ""},
    {"copy_wait_group", "cp.async.wait_group $0;", "n"},
    {"barrier_arrive_at", IF_ACTIVE("1") "mbarrier.arrive.shared::cluster.b64 _, [$0]; }", "r,r"},
    {"cluster_sync", "barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait.acquire;", ""},
    {"launch_next", "griddepcontrol.launch_dependents;", ""},
    {"wait_previous", "griddepcontrol.wait;", ""},
    {"fence_barriers", "fence.mbarrier_init.release.cluster;", ""},
    {"fence_async", "fence.proxy.async.shared::cta;", ""},
    {"tensor_map", tensor_map, "l,r,l,r,r,l,r,r,n"},
    {"tensor_map_of", tensor_map_of, "l,r,l,r,r,l,r,r,n,r,l"},
    {"map_acquire", "fence.proxy.tensormap::generic.acquire.gpu [$0], 128;", "l"},
    {"tensor_copy",
     IF_ACTIVE("5") "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [$0], "
                    "[$1, {$2, "
                    "$3}], [$4]; }",
     "r,l,r,r,r,r"},
    {"tensor_copy_of",
     IF_ACTIVE("6") "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [$0], "
                    "[$1, {$2, $3, $4}], [$5]; }",
     "r,l,r,r,r,r,r"},
    {"tensor_copy_to_all",
     "{ .reg .pred p; .reg .b16 m; setp.ne.u32 p, $7, 0; cvt.u16.u32 m, $6;\n"
     "@p cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
     "[$0], [$1, {$2, $3, $4}], [$5], m; }",
     "r,l,r,r,r,r,r,r"},
    {"tensor_store_of",
     IF_ACTIVE("5") "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [$0, {$2, $3, $4}], [$1]; }",
     "l,r,r,r,r,r"},
    {"store_commit", "cp.async.bulk.commit_group;", ""},
    {"store_wait_read", "cp.async.bulk.wait_group.read 0;", ""},
    {"copy",
     IF_ACTIVE(
         "4") "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3]; }",
     "r,l,r,r,r"},
    {"store_matrices", "stmatrix.sync.aligned.m8n8.x4.shared::cta.b16 [$0], {$1, $2, $3, $4};", "r,r,r,r,r"},
    {"add_four", "red.relaxed.gpu.global.add.v4.f32 [$0], {$1, $2, $3, $4};", "l,f,f,f,f"},
    {"fewer_registers", "setmaxnreg.dec.sync.aligned.u32 $0;", "n"},
    {"more_registers", "setmaxnreg.inc.sync.aligned.u32 $0;", "n"},
    {"group_sync", "bar.sync $0, $1;", "r,n"},
    {"group_arrive", "bar.arrive $0, $1;", "r,n"},
    {"sync", "bar.sync 0;", ""},
    {"wgmma_fence", "wgmma.fence.sync.aligned;", ""},
    {"wgmma_commit", "wgmma.commit_group.sync.aligned;", ""},
    {"wgmma_wait", "wgmma.wait_group.sync.aligned $0;", "n"},
};

static smelt_status lower_plain(struct unit *unit, LLVMValueRef call, const struct instruction *instruction) {
    LLVMValueRef arguments[ASSEMBLY_MAX_OPERANDS];
    unsigned count = LLVMGetNumArgOperands(call);
    struct text constraints = {0};
    for (unsigned i = 0; i < count; i++) arguments[i] = LLVMGetOperand(call, i);
    text_addf(&constraints, "%s%s~{memory}", instruction->constraints, count ? "," : "");
    ptx_assembly(unit, instruction->text, text_string(&constraints), NULL, arguments, count, true);
    text_free(&constraints);
    LLVMInstructionEraseFromParent(call);
    return SMELT_OK;
}

/* ---- Asynchronous products of a warpgroup. Its sums are operands, read and written, of each instruction
 * that touches them, so that LLVM keeps them in registers and in order. */

#define MOST_SUMS 256

/* Loads `count` floats, runs the assembly, whose first operands they are, and stores them. */
static smelt_status with_sums(struct unit *unit, LLVMValueRef sums, unsigned count, const char *text,
                              const char *constraints, const LLVMValueRef *more, unsigned more_count) {
    LLVMBuilderRef b = unit->builder;
    LLVMTypeRef real = LLVMFloatTypeInContext(unit->context), types[MOST_SUMS + 8], results[MOST_SUMS];
    LLVMValueRef arguments[MOST_SUMS + 8], places[MOST_SUMS];
    struct text all = {0};
    for (unsigned i = 0; i < more_count; i++) arguments[i] = more[i];
    for (unsigned i = 0; i < count; i++) {
        LLVMValueRef index = constant_i32(unit, i);
        places[i] = LLVMBuildInBoundsGEP2(b, real, sums, &index, 1, "");
        arguments[more_count + i] = LLVMBuildLoad2(b, real, places[i], "");
        LLVMSetAlignment(arguments[more_count + i], 4);
        results[i] = real;
        text_addf(&all, "=f,");
    }
    text_addf(&all, "%s", constraints);
    for (unsigned i = 0; i < count; i++) text_addf(&all, "%u,", i);
    text_addf(&all, "~{memory}");
    for (unsigned i = 0; i < more_count + count; i++) types[i] = LLVMTypeOf(arguments[i]);
    LLVMTypeRef result = LLVMStructTypeInContext(unit->context, results, count, false);
    LLVMTypeRef type = LLVMFunctionType(result, types, more_count + count, false);
    const char *list = text_string(&all);
    LLVMValueRef code = LLVMGetInlineAsm(type, text, strlen(text), list, strlen(list), true, false,
                                         LLVMInlineAsmDialectATT, false);
    LLVMValueRef after = LLVMBuildCall2(b, type, code, arguments, more_count + count, "");
    text_free(&all);
    static const char *const attributes[] = {"convergent", "nounwind"};
    for (int i = 0; i < 2; i++) {
        unsigned kind = LLVMGetEnumAttributeKindForName(attributes[i], strlen(attributes[i]));
        LLVMAddCallSiteAttribute(after, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                 LLVMCreateEnumAttribute(unit->context, kind, 0));
    }
    for (unsigned i = 0; i < count; i++)
        LLVMSetAlignment(LLVMBuildStore(b, LLVMBuildExtractValue(b, after, i, ""), places[i]), 4);
    return SMELT_OK;
}

static smelt_status refuse(struct unit *unit, LLVMValueRef call, unsigned argument) {
    return unit_fail(unit, SMELT_ERROR_INTERNAL, "argument %u of %s is not a constant in range", argument,
                     called_name(call));
}

/* By type: half, bfloat, and two of one byte, which have no transposes. */
static const char *const wgmma_types[] = {"k16.f32.f16.f16", "k16.f32.bf16.bf16", "k32.f32.e4m3.e4m3",
                                          "k32.f32.e5m2.e5m2"};
#define WGMMA_BYTES 2 /* the first of these types */

/* wgmma: the left matrix is in threadgroup memory, at a descriptor. wgmma_registers: it is in four registers
 * of each thread, and has no transpose. */
static smelt_status lower_wgmma(struct unit *unit, LLVMValueRef call, bool registers) {
    /* Operands: sums, left (one or four), right, add; then constants: columns, type, transposes. */
    unsigned lefts = registers ? 4 : 1, first = lefts + 3, last = registers ? first + 2 : first + 3;
    uint64_t constant[4] = {0};
    for (unsigned i = first; i <= last; i++)
        if (!is_constant_integer(LLVMGetOperand(call, i), &constant[i - first])) return refuse(unit, call, i);
    uint64_t columns = constant[0], type = constant[1];
    if (columns % 8 || columns < 8 || columns > 256) return refuse(unit, call, first);
    if (type >= sizeof wgmma_types / sizeof *wgmma_types) return refuse(unit, call, first + 1);
    unsigned count = (unsigned)columns / 2;
    struct text text = {0};
    text_addf(&text, "{ .reg .pred p; setp.ne.b32 p, $%u, 0;\nwgmma.mma_async.sync.aligned.m64n%u%s {",
              count + lefts + 1, (unsigned)columns, wgmma_types[type]);
    for (unsigned i = 0; i < count; i++) text_addf(&text, "%s$%u", i ? ", " : "", i);
    if (registers)
        text_addf(&text, "}, {$%u, $%u, $%u, $%u}, $%u, p, 1, 1, %d; }", count, count + 1, count + 2,
                  count + 3, count + 4, (int)constant[2]);
    else if (type >= WGMMA_BYTES)
        text_addf(&text, "}, $%u, $%u, p, 1, 1; }", count, count + 1);
    else
        text_addf(&text, "}, $%u, $%u, p, 1, 1, %d, %d; }", count, count + 1, (int)constant[2],
                  (int)constant[3]);
    LLVMValueRef more[6];
    for (unsigned i = 0; i < lefts + 2; i++) more[i] = LLVMGetOperand(call, i + 1);
    smelt_status status = with_sums(unit, LLVMGetOperand(call, 0), count, text_string(&text),
                                    registers ? "r,r,r,r,l,r," : "l,l,r,", more, lefts + 2);
    text_free(&text);
    LLVMInstructionEraseFromParent(call);
    return status;
}

static smelt_status lower_finish(struct unit *unit, LLVMValueRef call) {
    uint64_t count, groups;
    char text[64];
    if (!is_constant_integer(LLVMGetOperand(call, 1), &count) || count < 1 || count > MOST_SUMS)
        return refuse(unit, call, 1);
    if (!is_constant_integer(LLVMGetOperand(call, 2), &groups) || groups > 7) return refuse(unit, call, 2);
    snprintf(text, sizeof text, "wgmma.wait_group.sync.aligned %u;", (unsigned)groups);
    smelt_status status = with_sums(unit, LLVMGetOperand(call, 0), (unsigned)count, text, "", NULL, 0);
    LLVMInstructionEraseFromParent(call);
    return status;
}

/* ---- Values. */

static void replace(LLVMValueRef call, LLVMValueRef value) {
    LLVMReplaceAllUsesWith(call, value);
    LLVMInstructionEraseFromParent(call);
}

/* Functions of words, without side effects. */
#define HALVES(half, type) "{ .reg .b16 a, b; mov.b32 {a, b}, $1; cvt.rn.f16x2." type " $0, " half "; }"
static const struct instruction pure[] = {
    {"fma_halves", "fma.rn.f16x2 $0, $1, $2, $3;", "=r,r,r,r"},
    {"fma_bfloats", "fma.rn.bf16x2 $0, $1, $2, $3;", "=r,r,r,r"},
    {"max_nan", "max.NaN.f32 $0, $1, $2;", "=f,f,f"},
    {"permute_bytes", "prmt.b32 $0, $1, $2, $3;", "=r,r,r,r"},
    {"halves_of_low_e4m3", HALVES("a", "e4m3x2"), "=r,r"},
    {"halves_of_high_e4m3", HALVES("b", "e4m3x2"), "=r,r"},
    {"halves_of_low_e5m2", HALVES("a", "e5m2x2"), "=r,r"},
    {"halves_of_high_e5m2", HALVES("b", "e5m2x2"), "=r,r"},
};

static void lower_pure(struct unit *unit, LLVMValueRef call, const struct instruction *instruction) {
    LLVMValueRef operands[3];
    unsigned count = LLVMGetNumArgOperands(call);
    for (unsigned i = 0; i < count; i++) operands[i] = LLVMGetOperand(call, i);
    replace(call, ptx_assembly(unit, instruction->text, instruction->constraints, LLVMTypeOf(call), operands,
                               count, false));
}

/* Maps of a group lie where no other group that runs at the same time has its own: staging memory is so large
 * that a multiprocessor runs one such group at a time. */
#define MOST_MULTIPROCESSORS 1024
#define MAP_BYTES 384

static LLVMValueRef map_memory(struct unit *unit) {
    LLVMBuilderRef b = unit->builder;
    LLVMTypeRef byte = LLVMInt8TypeInContext(unit->context);
    LLVMValueRef maps = LLVMGetNamedGlobal(unit->module, PTX_MAPS_NAME);
    if (!maps) {
        LLVMTypeRef type = LLVMArrayType2(byte, (uint64_t)MOST_MULTIPROCESSORS * MAP_BYTES);
        maps = LLVMAddGlobalInAddressSpace(unit->module, type, PTX_MAPS_NAME, PTX_GLOBAL);
        LLVMSetInitializer(maps, LLVMConstNull(type));
        LLVMSetAlignment(maps, 128);
    }
    LLVMValueRef number =
        LLVMBuildAnd(b, ptx_register(unit, "smid"), constant_i32(unit, MOST_MULTIPROCESSORS - 1), "");
    LLVMValueRef offset = LLVMBuildMul(b, number, constant_i32(unit, MAP_BYTES), "");
    return LLVMBuildPtrToInt(b, LLVMBuildInBoundsGEP2(b, byte, maps, &offset, 1, ""), type_i64(unit), "");
}

static smelt_status declare_clusters(struct unit *unit, LLVMValueRef call) {
    uint64_t groups;
    if (!is_constant_integer(LLVMGetOperand(call, 0), &groups) || groups < 1 || groups > 8)
        return refuse(unit, call, 0);
    ptx_set_cluster(unit, (uint32_t)groups);
    LLVMInstructionEraseFromParent(call);
    return SMELT_OK;
}

static smelt_status declare_resident(struct unit *unit, LLVMValueRef call) {
    uint64_t groups;
    if (!is_constant_integer(LLVMGetOperand(call, 0), &groups) || groups < 1 || groups > 32)
        return refuse(unit, call, 0);
    ptx_annotate(unit, "minctasm", (uint32_t)groups);
    LLVMInstructionEraseFromParent(call);
    return SMELT_OK;
}

static smelt_status lower(struct unit *unit, LLVMValueRef call) {
    const char *name = called_name(call) + strlen(intrinsic_traits(INTRINSIC_PTX)->name);
    LLVMPositionBuilderBefore(unit->builder, call);
    if (strcmp(name, "wait_previous") == 0) unit->result->image.early = true;
    for (size_t i = 0; i < sizeof instructions / sizeof *instructions; i++)
        if (strcmp(name, instructions[i].name) == 0) return lower_plain(unit, call, &instructions[i]);
    if (strcmp(name, "wgmma") == 0) return lower_wgmma(unit, call, false);
    if (strcmp(name, "wgmma_registers") == 0) return lower_wgmma(unit, call, true);
    if (strcmp(name, "wgmma_finish") == 0) return lower_finish(unit, call);
    for (size_t i = 0; i < sizeof pure / sizeof *pure; i++) {
        if (strcmp(name, pure[i].name) != 0) continue;
        lower_pure(unit, call, &pure[i]);
        return SMELT_OK;
    }
    if (strcmp(name, "shared_address") == 0) {
        replace(call, LLVMBuildPtrToInt(unit->builder, LLVMGetOperand(call, 0), type_i32(unit), ""));
    } else if (strcmp(name, "broadcast") == 0) {
        LLVMValueRef value = LLVMGetOperand(call, 0);
        replace(call, ptx_assembly(unit, "shfl.sync.idx.b32 $0, $1, 0, 31, 0xffffffff;", "=r,r",
                                   type_i32(unit), &value, 1, true));
    } else if (strcmp(name, "exchange") == 0) {
        LLVMValueRef operands[2] = {LLVMGetOperand(call, 0), LLVMGetOperand(call, 1)};
        replace(call, ptx_assembly(unit, "shfl.sync.bfly.b32 $0, $1, $2, 31, 0xffffffff;", "=r,r,r",
                                   type_i32(unit), operands, 2, true));
    } else if (strcmp(name, "lane") == 0) {
        replace(call, ptx_register(unit, "laneid"));
    } else if (strcmp(name, "fragment_lanes") == 0) {
        ptx_order_lanes(unit);
        LLVMInstructionEraseFromParent(call);
    } else if (strcmp(name, "cluster_rank") == 0) {
        replace(call, ptx_register(unit, "cluster.ctarank"));
    } else if (strcmp(name, "cluster_address") == 0) {
        LLVMValueRef operands[2] = {LLVMGetOperand(call, 0), LLVMGetOperand(call, 1)};
        replace(call, ptx_assembly(unit, "mapa.shared::cluster.u32 $0, $1, $2;", "=r,r,r", type_i32(unit),
                                   operands, 2, false));
    } else if (strcmp(name, "clusters") == 0) {
        return declare_clusters(unit, call);
    } else if (strcmp(name, "resident") == 0) {
        return declare_resident(unit, call);
    } else if (strcmp(name, "map_memory") == 0) {
        replace(call, map_memory(unit));
    } else {
        return unit_fail(unit, SMELT_ERROR_INTERNAL, "the PTX engine does not support the intrinsic %s",
                         called_name(call));
    }
    return SMELT_OK;
}

smelt_status pass_ptx_instructions(struct unit *unit) {
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(instruction, block) {
        if (intrinsic_of(instruction) == INTRINSIC_PTX) TRY(lower(unit, instruction));
    }
    return SMELT_OK;
}
