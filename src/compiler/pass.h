/* Shared by the passes: the current module, failure, and small helpers over the LLVM-C API. */
#ifndef SMELT_COMPILER_PASS_H
#define SMELT_COMPILER_PASS_H

#include "abi/compiler.h"
#include "abi/entry_names.h"
#include "compiler/engine.h"
#include "compiler/intrinsic.h"

#include <llvm-c/Core.h>
#include <llvm-c/Target.h>

/* budget.h: how much code a kernel may become. */
enum code_form { FORM_BEST, FORM_PLAIN };

struct unit {
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMValueRef entry; /* __smelt_entry */
    LLVMBuilderRef builder;
    LLVMTargetDataRef layout;
    const struct compile_request *request;
    struct compile_result *result;
    enum engine engine;
    const struct engine_target *target; /* the engine's entry in engines.c */
    bool stopped;                       /* after the pass that the request names */
    bool refused;                       /* by the SIMD engine: the scalar engine will do it */
    bool smaller;                       /* a budget is exceeded: it must be compiled in the next form */
    bool unrolls;                       /* the source asks for loops to be unrolled (rolled.c) */
    uint64_t refused_unrolling;         /* instructions of a loop that is not, if not 0 (unrolled.c) */
    bool drops_names;                   /* once the module is contracted */
    bool simplified;                    /* most of its code was optimised before it was inlined */
    bool long_thread;                   /* fewer passes optimise it (budget_find_long) */
    bool alike;                         /* simdgroups multiply together (ptx/matrix/alike.c) */
    bool rows_share_banks;              /* of matrices in threadgroup memory (ptx/memory/swizzle.c); … */
    bool rows_are_apart;                /* … others are placed so that they do not */
    enum code_form form;
    const char *because;        /* of the plain form: which budget the best form exceeded */
    smelt_status diagnosed;     /* an error LLVM reported by itself; the message is in the result */
    uint64_t test_instructions; /* that pass_bounds has added to the entry: they change no choice by size */
    uint64_t frame_bytes;       /* stack use of the machine code's functions, summed by pass_codegen */
};

smelt_status unit_fail(struct unit *unit, smelt_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Iteration that survives the removal of the current instruction. */
#define FOR_EACH_BLOCK(block, function)                                     \
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block; \
         block = LLVMGetNextBasicBlock(block))
#define FOR_EACH_INSTRUCTION(instruction, block)                                                     \
    for (LLVMValueRef instruction = LLVMGetFirstInstruction(block),                                  \
                      next_##instruction = instruction ? LLVMGetNextInstruction(instruction) : NULL; \
         instruction; instruction = next_##instruction,                                              \
                      next_##instruction = instruction ? LLVMGetNextInstruction(instruction) : NULL)

/* The name of the function a call calls directly, or "". */
const char *called_name(LLVMValueRef instruction);

/* named.c — UNSUPPORTED, with the place of the user's that the instruction comes from in front. */
smelt_status unit_fail_at(struct unit *unit, LLVMValueRef instruction, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* named.c — a function's own name, of a variable the last name in its symbol: _ZN2ns7counterE → counter. */
void unit_plain_name(struct unit *unit, LLVMValueRef value, char name[200]);
/* … of an alloca that has its name: the variable's. */
void unit_variable_name(LLVMValueRef variable, char name[200]);
/* … of a private array or object, if unit_keep_private_names has kept it; else false. */
bool unit_private_name(struct unit *unit, LLVMValueRef variable, char name[200]);
void unit_keep_private_names(struct unit *unit);
/* … removes the names of all values in functions. */
void unit_drop_names(struct unit *unit);
/* … whether it calls a function of the program, and which. Those that are left in an optimised entry call
 * themselves. */
bool unit_calls_itself(struct unit *unit, LLVMValueRef call, char name[200]);
#define CALLS_ITSELF "it calls function '%s', which calls itself"

/* Address space of threadgroup memory. */
#define THREADGROUP_SPACE 3

bool is_constant_integer(LLVMValueRef value, uint64_t *out);
/* A phi's value on the edge from a block; NULL: there is no such edge. */
LLVMValueRef phi_incoming(LLVMValueRef phi, LLVMBasicBlockRef from);

LLVMValueRef constant_i32(struct unit *unit, uint32_t value);
/* The address of a constant of the code. */
LLVMValueRef constant_in_memory(struct unit *unit, LLVMValueRef value);
/* … of text, which ends with a zero byte. */
LLVMValueRef constant_text(struct unit *unit, const char *text, size_t length);
LLVMTypeRef type_i32(struct unit *unit);
/* A float as an integer of a type, truncated and cut to its range, NaN as 0; built at the builder's place. */
LLVMValueRef build_saturated(struct unit *unit, LLVMValueRef value, LLVMTypeRef type, bool is_signed);
LLVMTypeRef type_i64(struct unit *unit);
LLVMTypeRef type_pointer(struct unit *unit);

/* Calls whose names begin so only stand for their first operands (check/arithmetic.c). */
#define CHECK_MARK "smelt.check."

/* Inserts an instruction, which keeps its own place in the source. */
void build_kept(LLVMBuilderRef builder, LLVMValueRef instruction);

/* Calls the intrinsic llvm.<name> overloaded for `type`. */
LLVMValueRef build_intrinsic(struct unit *unit, const char *name, LLVMTypeRef type, LLVMValueRef *arguments,
                             unsigned count);

/* Calls an intrinsic that is not overloaded, by its whole name. */
LLVMValueRef build_function(struct unit *unit, const char *name, LLVMValueRef *arguments, unsigned count);

/* Calls inline assembly: `result` NULL for none; `effects`: it has side effects. */
#define ASSEMBLY_MAX_OPERANDS 16
LLVMValueRef build_assembly(struct unit *unit, const char *text, const char *constraints, LLVMTypeRef result,
                            LLVMValueRef *arguments, unsigned count, bool effects);

/* Copies a code generator's output, `size` bytes, to the image, or as text if requested. A 0 follows, which
 * the image's object_size does not count. */
smelt_status unit_keep_code(struct unit *unit, const char *code, size_t size);

/* Runs LLVM passes by their textual names on the whole module. */
smelt_status run_passes(struct unit *unit, const char *passes);
/* … for engines whose target does not matter to them. */
smelt_status run_plain_passes(struct unit *unit, const char *passes);

/* The passes that clean up a function after inlining. */
#define CLEAN_FUNCTIONS                                                                         \
    "function(sroa<modify-cfg>,early-cse<memssa>,simplifycfg,infer-address-spaces,instcombine<" \
    "no-verify-fixpoint>,simplifycfg)"

/* In debug builds: INTERNAL if LLVM's verifier finds the module wrong. */
smelt_status unit_verify(struct unit *unit);

/* ---- The passes, in about the order they run (pipeline.c). Each is one file. */

/* assertions.c — only engines that check evaluate the conditions of assertions; in the code of the others,
 * nothing of them is left. */
smelt_status pass_assertions(struct unit *unit);

/* hints.c — removes prefetches, annotations and expectations, which only advise. */
smelt_status pass_hints(struct unit *unit);

/* declare.c — gives intrinsics their attributes, makes all functions except the entry internal and inlined.
 */
smelt_status pass_declare(struct unit *unit);
/* … of a function that a pass adds: it brings lanes together and does not touch the kernel's memory. */
void declare_convergent(struct unit *unit, LLVMValueRef function);
/* … it only computes its value from its arguments. */
void declare_pure(struct unit *unit, LLVMValueRef function);
/* … so it does, but may not be called where the source does not call it. */
void declare_in_place(struct unit *unit, LLVMValueRef function);
/* … it may have effects, but none on the kernel's memory. */
void declare_apart(struct unit *unit, LLVMValueRef function);
/* ptx/matrix/alike.c — finds tensor operations of simdgroups that the whole threadgroup executes alike. */
smelt_status pass_alike(struct unit *unit);

/* staging.c — the threadgroup memory that __smelt_staging shares becomes a variable. */
smelt_status pass_staging(struct unit *unit);
/* … a new variable in threadgroup memory, aligned for tensor copies and matrix descriptors. */
LLVMValueRef staging_variable(struct unit *unit, const char *name, uint64_t bytes);
/* rolled.c — in the plain form, loops are not unrolled because the source asks for it. */
smelt_status pass_rolled(struct unit *unit);
/* outlined.c — large functions of a kernel past its budget stay functions. */
smelt_status pass_outlined(struct unit *unit);
/* simplified.c — functions that a large kernel calls in many places are optimised first. */
smelt_status pass_simplified(struct unit *unit);
/* alignment.c — claimed alignments become the true ones of vectors, which may be at any multiple of their
 * elements' size; does nothing for PTX. Requires: memory calls as clang wrote them. */
smelt_status pass_alignment(struct unit *unit);
/* … accesses through a null pointer, for which LLVM infers 2^32 bytes, are aligned to their elements. */
smelt_status pass_null_alignment(struct unit *unit);
/* … the alignment that every object of a type has, however a kernel came to its address. */
unsigned alignment_of_element(struct unit *unit, LLVMTypeRef type);
/* … the same of the objects that a copy moves or a fill writes. */
unsigned alignment_of_copy(struct unit *unit, LLVMValueRef call);
/* … a copy or fill (other instructions stay as they are) claims no more than that. */
void alignment_settle_copy(struct unit *unit, LLVMValueRef call);
/* … the type that the code declares at an address; NULL: unknown. */
LLVMTypeRef alignment_type_at(LLVMValueRef pointer);
/* bindings.c — reads __smelt_bindings into the image and removes it. */
smelt_status pass_bindings(struct unit *unit);
/* … and, once function constants have their values, marks those that are absent. */
smelt_status pass_guarded_bindings(struct unit *unit);
/* … and, once the code is optimised, those it does not use. */
smelt_status pass_used_bindings(struct unit *unit);
/* … and reads the values of required_threads_per_threadgroup and max_total_threads_per_threadgroup, once
 * template arguments are folded. */
smelt_status pass_thread_limits(struct unit *unit);
/* constants.c — gives function constants their values; once the optimiser has evaluated expressions of them,
 * the rest is marked; at the end those that are read without having a value are refused. */
smelt_status pass_constants(struct unit *unit);
/* initialisers.c — takes the initialiser functions of constants apart, and evaluates them when they are
 * inlined. */
smelt_status pass_initialisers_listed(struct unit *unit);
smelt_status pass_initialisers_evaluated(struct unit *unit);
/* constants.c — variables stored to by an initialiser that cannot be evaluated have no value: names the
 * function constants to blame. */
smelt_status constants_forget(struct unit *unit, LLVMValueRef initialiser);
smelt_status pass_constants_used(struct unit *unit);
/* initialiser.c — whether the function only stored constants; then the variables have them from the start. */
bool initialiser_apply(struct unit *unit, LLVMValueRef function);
/* overflow.c — integer arithmetic wraps, whatever clang promises; once functions are inlined, sums that only
 * reach addresses get the promise back. */
smelt_status pass_wrap(struct unit *unit);
smelt_status pass_indexes(struct unit *unit);
/* guard.c — integer division, shifts: defined results where C++ leaves them undefined; contraction fixed as
 * fma. */
smelt_status pass_guard(struct unit *unit);
/* contract.c — products of vectors that are added within a statement become fma. Requires: the module as
 * clang wrote it. */
smelt_status pass_contract(struct unit *unit);
/* values.c — integers that the launch passes become constants, in code for given values; otherwise the image
 * lists those that would pay. */
smelt_status pass_values(struct unit *unit);
/* leave.c — threads that leave a loop, or return, through blocks that only branch do so directly. */
smelt_status pass_leave(struct unit *unit);
/* returns.c — marks of returns in functions that the kernel calls end the thread, or go. */
smelt_status pass_returns(struct unit *unit);
/* Is anything in the block that a thread which has ended could not do any more? */
bool returns_has_effect(LLVMBasicBlockRef block);
/* part.c — ways that lead past threadgroup barriers get code of their own, in the loop that they leave. */
smelt_status pass_part(struct unit *unit);
/* hold.c — simdgroup functions stay in their loops: LLVM has no notion of lanes that leave these. */
smelt_status pass_hold(struct unit *unit);
/* … ends that, in a function, once no pass follows that leads branches elsewhere. */
void hold_release(struct unit *unit, LLVMValueRef function);
/* sink.c — loads whose values are only selected move under the condition. */
smelt_status pass_sink(struct unit *unit);
/* sink_stays.c — on CPUs, whether a load that may be thrown away stays, as it is inside its object. */
bool sink_stays(struct unit *unit, LLVMValueRef load);
/* bfloat.c — bfloat arithmetic through float with exact rounding, in instructions every target has. */
smelt_status pass_bfloat(struct unit *unit);
/* bits.c — in a function: remaining bfloats, which are only moved, become integers. */
void bits_move_bfloats(struct unit *unit, LLVMValueRef function);
/* lines.c — every instruction's debug location becomes the user's line. */
smelt_status pass_lines(struct unit *unit);
/* … before LLVM optimises, which drops the locations of what it moves: accesses keep theirs as annotations
 * until pass_lines. */
smelt_status pass_lines_noted(struct unit *unit);
/* … the location of an instruction in the user's source: of the calls that were inlined, the innermost one
 * outside the prelude; NULL: it has none. */
LLVMMetadataRef lines_of_user(LLVMValueRef instruction);
/* Whether the user wrote the instruction, the function: not the prelude, or nobody. Of an instruction, its
 * own location counts, whatever it was inlined into. */
bool lines_are_of_user(LLVMValueRef instruction);
bool lines_of_function_are_of_user(LLVMValueRef function);
/* refuse.c — refuses constructs that no engine can run, by name, with the user's line. */
smelt_status pass_refuse(struct unit *unit);
/* invariant.c — loads from constant memory may move freely. */
smelt_status pass_invariant(struct unit *unit);
/* whole_index.c — an array's element at a quotient and a remainder by its rows' length is found without them.
 */
smelt_status pass_whole_index(struct unit *unit);
/* landmarks.c — marks in long rows of loops, which shorten the optimiser's searches, and their removal. */
smelt_status pass_landmarks(struct unit *unit);
smelt_status pass_landmarks_removed(struct unit *unit);
/* … whether the entry has so many loops that it needs them. */
smelt_status landmarks_are_needed(struct unit *unit, bool *many);
/* … calls `place` before every 16th loop of such an entry, with the branch to the loop. */
typedef void landmarks_place(struct unit *unit, LLVMValueRef before);
smelt_status landmarks_visit(struct unit *unit, landmarks_place *place);
/* join.c — groups of one thread become threads of a larger group. */
smelt_status pass_join(struct unit *unit);
/* narrow_bound.c — indexes of 32 bits are compared with bounds of 64 bits in their own bits. */
smelt_status pass_narrow_bound(struct unit *unit);
/* indirect.c — calls through pointers go to functions of the program, or nowhere. */
smelt_status pass_indirect(struct unit *unit);
/* specialise.c — sizes in the code shape become constants. */
smelt_status pass_specialise(struct unit *unit);
/* … a call that returns a position or a size gets the limit of its result in such launches; others stay as
 * they are. */
void specialise_limit(struct unit *unit, LLVMValueRef call);
/* compiler/simd/features.c — bits of the vector registers that code uses, by LLVM's names of CPU and
 * features; NULL: this machine's. */
int simd_vector_bits(const char *cpu, const char *features);
/* … whether it computes with halves. */
bool simd_computes_halves(const char *cpu, const char *features);
/* … whether it converts vectors of halves. */
bool simd_converts_halves(const char *cpu, const char *features);
/* … whether it multiplies vectors of bfloats (AVX512-BF16). */
bool simd_multiplies_bfloats(const char *cpu, const char *features);
/* … whether it has a matrix unit for them (AMX). */
bool simd_multiplies_blocks(const char *cpu, const char *features);
/* LLVM's names of this machine's features. */
const char *simd_host_features(void);

/* compiler/bounds/bounds.c — accesses are tested against the extents of their arrays. */
smelt_status pass_bounds(struct unit *unit);

/* compiler/simd/control/prepare.c, vectorise.c, settle.c — the entry gets the form that the vectoriser
 * understands; becomes code of a gang; is protected from LLVM's code generator. They set unit->refused, with
 * a message, where they cannot. */
smelt_status pass_simd_prepare(struct unit *unit);
/* simd/memory/prefetch.c — in loops with barriers, a round prefetches what the next one loads. */
smelt_status pass_simd_prefetch(struct unit *unit);
/* simd/control/unit_strides.c — blocks with accesses at multiples of a stride get a form for the stride 1. */
smelt_status pass_simd_unit_strides(struct unit *unit);
/* simd/memory/columns.c — loops in which each thread steps through a row of its own run a few rounds at once.
 */
smelt_status pass_simd_columns(struct unit *unit);
/* … merged.c: what all ways to a block compute alike is computed in the block. */
smelt_status pass_simd_merged(struct unit *unit);
/* … maxima.c: maxima of a number that is never NaN do not ask whether it is. */
smelt_status pass_simd_maxima(struct unit *unit);
smelt_status pass_simd_gang(struct unit *unit);
/* … ahead.c: loops compute the next round's reduction before they use their own. */
smelt_status pass_simd_ahead(struct unit *unit);
/* … gang_loop.c: one call of short code runs all gangs of a group. */
smelt_status pass_simd_gang_loop(struct unit *unit);
/* depth.c — loops over the depth of products of simdgroup matrices stay loops. */
smelt_status pass_depth(struct unit *unit);
/* unrolled.c — loops that the source asks to unroll do not become too large. */
smelt_status pass_unrolled(struct unit *unit);
/* … requests that would be met whatever the size are dropped where that is far too much. */
smelt_status pass_requests(struct unit *unit);
/* … whether each of a function's loops certainly ends within some 30,000 rounds, counted over all rounds of
 * the loops around it. */
bool unrolled_ends(struct unit *unit, LLVMValueRef function);
/* … how many loops of the entry have a number of rounds that is not known before the run. */
smelt_status unrolled_count_open(struct unit *unit, uint64_t *loops);
/* simd/arithmetic/estimates.c — rsqrt begins with the CPU's estimate of 1 / sqrt(x): marks before functions
 * are inlined, replaced in the gang's code. */
smelt_status pass_simd_mark_estimates(struct unit *unit);
smelt_status pass_simd_estimates(struct unit *unit);
smelt_status pass_simd_fused(struct unit *unit);
/* … halves.c: CPUs without arithmetic of halves compute with floats. */
smelt_status pass_simd_halves(struct unit *unit);
/* … half_bits.c: CPUs without F16C convert vectors of halves by integer operations. */
smelt_status pass_simd_half_bits(struct unit *unit);
/* … reloads.c: loads of what has been loaded already. */
smelt_status pass_simd_reloads(struct unit *unit);
/* … counters.c: counters of loops over ranges that threads load have 32 bits. */
smelt_status pass_simd_counters(struct unit *unit);
/* … narrow_products.c: products of 64 bits have 32 if only the lower half is used. */
smelt_status pass_simd_narrow_products(struct unit *unit);
/* … mask_words.c: masks of AVX2 code become vectors of words. */
smelt_status pass_simd_mask_words(struct unit *unit);
smelt_status pass_simd_settle(struct unit *unit);
/* … registers.c: vector registers hold nothing when the code begins. */
smelt_status pass_simd_registers(struct unit *unit);
/* compiler/cpu/group_atomics.c — atomic operations on threadgroup memory become plain ones. */
smelt_status pass_group_accesses(struct unit *unit);
smelt_status pass_group_updates(struct unit *unit);
/* compiler/cpu/lower.c — intrinsics become loads from the thread's context and calls of the scalar engine's
 * runtime. */
smelt_status pass_lower_scalar(struct unit *unit);
/* cpu/overwritten.c — stores to threadgroup memory wait for other simdgroups' loads of what they overwrite.
 */
smelt_status pass_overwritten(struct unit *unit);
/* compiler/cpu/written_first.c — threadgroup variables that all threads of a group write before any reads
 * them go into this section. */
#define WRITTEN_FIRST_SECTION "written first"
smelt_status pass_written_first(struct unit *unit);
/* compiler/cpu/memory_layout.c — threadgroup variables become offsets from the pointer that `group` (struct
 * group_context *) names; image.private_bytes is measured, LIMIT if it is too much. */
smelt_status memory_place_variables(struct unit *unit, LLVMValueRef function, LLVMValueRef group);
smelt_status memory_measure_private(struct unit *unit);
/* compiler/ptx/ptx.c — the entry becomes a kernel for NVIDIA GPUs, and PTX. */
extern const struct pass ptx_passes[];
/* compiler/ptx/retarget.c — the module's target and data layout are NVPTX's: LLVM then optimises for a GPU,
 * where lanes go different ways and 64 bits cost twice as much as 32. Its address spaces stay clang's until
 * pass_ptx_retarget. */
smelt_status pass_ptx_target(struct unit *unit);
/* compiler/ptx/code.c — LLVM passes that depend on the GPU's capabilities. */
smelt_status ptx_run_passes(struct unit *unit, const char *passes);
/* compiler/ptx/arithmetic/math.c — before anything is inlined: fast forms of functions become the GPU's own
 * approximations. */
smelt_status pass_ptx_math(struct unit *unit);
/* compiler/ptx/memory/memory.c — copies of small objects become loads and stores of their parts. */
smelt_status pass_ptx_memory(struct unit *unit);
/* compiler/cpu/codegen.c — LLVM passes that depend on the target's capabilities. */
smelt_status cpu_run_passes(struct unit *unit, const char *passes);
/* compiler/cpu/outside.c — of an object: it needs nothing that the runtime lacks. */
smelt_status outside_check(struct unit *unit);
/* cut.c — long blocks become several. */
smelt_status pass_cut(struct unit *unit);
/* compiler/cpu/codegen.c — machine code, into result->image or result->text. */
smelt_status pass_codegen(struct unit *unit);

#endif
