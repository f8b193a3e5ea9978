/* Shared by the passes that generate PTX. They take the optimised code of one thread; a simdgroup is a warp,
 * a threadgroup a block of one dimension. In order (ptx.c): inline, retarget, matrix, simdgroup, lower, code.
 */
#ifndef SMELT_COMPILER_PTX_PTX_H
#define SMELT_COMPILER_PTX_PTX_H

#include "compiler/pass.h"

/* NVPTX's address spaces, which the module uses once it is retargeted. */
#define PTX_GLOBAL 1
#define PTX_SHARED 3

/* parameters.c — inlined buffers that the code only loads from become parts of the kernel's parameter; the
 * image's bindings say which. Requires: the module not yet retargeted. */
smelt_status pass_ptx_inline(struct unit *unit);

/* expanded.c — which tensors the launch may copy in a wider type, for products that read them from there.
 * Requires: the module not yet retargeted. Establishes: the image's `expands` and `expanded_tile`. */
smelt_status pass_ptx_expanded(struct unit *unit);
/* parameters.c — the offset of the address of a tensor's copy. */
uint64_t ptx_copy_offset(const struct unit *unit, const struct tensor_binding *tensor);

/* The memory of tensor maps: the code has products by asynchronous tensor cores. */
#define PTX_MAPS_NAME INTRINSIC_PREFIX "maps"

/* instructions.c — instructions that the prelude calls by name. Requires: the module retargeted. */
smelt_status pass_ptx_instructions(struct unit *unit);

/* fragments.c — products on tensor cores that the prelude calls by name. Requires: the module retargeted. */
smelt_status pass_ptx_fragments(struct unit *unit);

/* math.c — divisions that may be approximate are (see pass_ptx_math in compiler/pass.h). Requires: the module
 * retargeted. */
smelt_status pass_ptx_division(struct unit *unit);

/* scaled.c — powers of two move into sums, where a fused multiply-add computes both. Requires: the module
 * retargeted. */
smelt_status pass_ptx_scaled(struct unit *unit);

/* retarget.c — the module is NVPTX's: its triple, its data layout, its address spaces; nothing of clang's x86
 * is left, no debug information either. */
smelt_status pass_ptx_retarget(struct unit *unit);

/* sunk.c — stores that follow several ways go back to their ends, where neighbours are stored. */
smelt_status pass_ptx_sunk(struct unit *unit);

/* guards.c — chains of guarded accesses get a form that loads first, for the case that all guards hold. */
smelt_status pass_ptx_guards(struct unit *unit);

/* strides.c — a second version of the code for strides that are multiples. */
smelt_status pass_ptx_strides(struct unit *unit);

/* matrix.c — products of simdgroup matrices become shuffles and multiply-adds. */
smelt_status pass_ptx_matrix(struct unit *unit);

/* pairs.c — pairs of lanes that store the halves of the same words of threadgroup memory store words. */
smelt_status pass_ptx_pairs(struct unit *unit);
/* … whether stores to threadgroup memory must stay before the instruction. */
bool ptx_ends_stores(LLVMValueRef instruction);
/* banks.c — some lanes reorder their stores to threadgroup memory, so that fewer lanes share a bank. */
smelt_status pass_ptx_banks(struct unit *unit);

/* lower.c — addresses of arguments, before LLVM joins those of two ways into one of an index that depends. */
smelt_status pass_ptx_addresses(struct unit *unit);

/* simdgroup.c — simdgroup operations become warp instructions over the lanes that are active there. */
smelt_status pass_ptx_simdgroup(struct unit *unit);

/* apart.c — whether what is loaded at one address cannot be what is stored at the other. */
bool ptx_are_apart(struct unit *unit, LLVMValueRef loaded, LLVMValueRef stored);

/* rounds.c — several rounds of a loop run at once, loads first. */
smelt_status pass_ptx_rounds(struct unit *unit);

/* bfloats.c — sums and products of bfloats become bfloat instructions of the GPU. */
smelt_status pass_ptx_bfloats(struct unit *unit);

/* tables.c — look-ups in constant tables of a few bytes become permutations of registers. */
smelt_status pass_ptx_tables(struct unit *unit);

/* early.c — loads move ahead of earlier stores to other memory. */
smelt_status pass_ptx_early(struct unit *unit);

/* Metadata of accesses whose alignment has been asked for. */
#define PTX_ALIGNED "smelt.aligned"

/* coarsen.c — one thread of the hardware does the work of several, where the shape allows it. */
smelt_status pass_ptx_coarsen(struct unit *unit);
/* … whether the kernel is a loop whose threads will run together: then its rounds stay apart. */
bool ptx_coarsens_loop(struct unit *unit);

/* inside.c — tests of accesses become comparisons, and code that describes an access that fails one. */
smelt_status pass_ptx_inside(struct unit *unit);

/* together.c — in the code of checked runs, the remaining lanes of a warp end together before an instruction
 * that needs all of them. */
smelt_status pass_ptx_together(struct unit *unit);

/* lower.c — the remaining intrinsics: positions, addresses, barriers, returns, log lines; atomics get their
 * fences; loops poll the stop flag if the shape requires it. */
smelt_status pass_ptx_lower(struct unit *unit);

/* clean.c — LLVM's passes that clean the code once it is retargeted, and once it is lowered. */
smelt_status ptx_clean_retargeted(struct unit *unit);
smelt_status ptx_clean_lowered(struct unit *unit);

/* unroll.c — unrolls loops over private arrays, so that the arrays are in registers. */
smelt_status pass_ptx_unroll(struct unit *unit);
struct flow;
/* … asks LLVM to unroll a loop with one latch fully, unless the source says that it must not. */
void ptx_ask_to_unroll(struct unit *unit, const struct flow *flow, int loop);
/* … or to run `rounds` of its rounds at once. */
void ptx_ask_for_rounds(struct unit *unit, const struct flow *flow, int loop, uint32_t rounds);
/* counted.c — … by loop: adds those of matrix products, and those that fill their tiles, if they have few
 * rounds. Inner loops that are not wanted stay loops. */
void ptx_want_counted(struct unit *unit, const struct flow *flow, bool *wanted, int *rounds);
/* choose.c — a condition that chooses between two tests of the same outcome becomes one test. */
smelt_status pass_ptx_choose(struct unit *unit);
/* once.c — what depends on the launch's arguments alone is computed before loops. */
smelt_status pass_ptx_once(struct unit *unit);
/* unroll_rounds.c — short loops run a few rounds at once, in kernels with few loops. */
smelt_status pass_ptx_unroll_rounds(struct unit *unit);

/* nearby.c — loads a constant apart share one address where LLVM does not see it. */
smelt_status pass_ptx_nearby(struct unit *unit);

/* pack.c — pairs of floats rounded to 16 bits in one conversion. */
smelt_status pass_ptx_pack(struct unit *unit);
/* … whether a value is a float rounded to bfloat, as its 16 bits (compiler/passes/bfloat.c). */
bool ptx_rounds_to_bfloat(LLVMValueRef value);

/* atomics.c — atomic additions of floats to neighbours become one of a vector. */
smelt_status pass_ptx_atomics(struct unit *unit);
/* zeros.c — how many low bits of a number or an address are zero (compiler/analysis/zeros.h). */
unsigned ptx_known_zeros(struct unit *unit, LLVMValueRef value);
/* indexes.c — a work-around that LLVM's pass that joins neighbouring accesses needs. */
void ptx_part_indexes(struct unit *unit);
/* code.c — both. NVPTX's code generator runs the pass, too. */
smelt_status ptx_join_accesses(struct unit *unit);
/* neighbours.c — neighbouring narrow accesses become wide ones where their addresses are aligned. */
smelt_status pass_ptx_neighbours(struct unit *unit);
/* … LLVM joins neighbouring accesses, whose claimed alignment must hold. Two bytes become one word of 16
 * bits. */
smelt_status ptx_join_narrow(struct unit *unit);
/* Whether each user of a vector takes one element, by a constant index. */
bool ptx_only_parts_are_used(LLVMValueRef vector);
/* align.c — the claimed alignment of accesses is proved, or checked at run time, or dropped. Behind it LLVM's
 * own passes join nothing that it did not see. */
smelt_status pass_ptx_align(struct unit *unit);
/* words.c — neighbouring narrow loads that are not known to be aligned become loads of the words around them.
 */
smelt_status pass_ptx_words(struct unit *unit);
/* … whether the address of such words is hidden from LLVM by the instruction. */
bool ptx_hides_words(struct unit *unit, LLVMValueRef instruction);
/* copied.c — loads from threadgroup arrays that hold copies of constant tables are marked. */
smelt_status pass_ptx_copied(struct unit *unit);
/* … The table of which a marked load reads a copy, and where the copy begins; NULL: it is not marked. */
LLVMValueRef ptx_copied_table(struct unit *unit, LLVMValueRef load, LLVMValueRef *copy);
/* … The index of the element of an array that a getelementptr takes from the array's start; NULL: it takes
 * something else. */
LLVMValueRef ptx_index_in(LLVMTypeRef array, LLVMValueRef gep);
/* … Whether an address is that of an element of a global array: which one, and its index. */
bool ptx_element_of(struct unit *unit, LLVMValueRef address, LLVMValueRef *array, LLVMValueRef *index);
/* nibbles.c — look-ups of a word's 4-bit parts in constant tables of bfloats become permutations. */
smelt_status pass_ptx_nibbles(struct unit *unit);
/* ahead.c — loads under a condition, ahead of their use under the same one, become predicated. */
smelt_status pass_ptx_ahead(struct unit *unit);
/* swizzle.c — parts of threadgroup memory change places, so that rows of matrices use different banks. */
smelt_status pass_ptx_swizzle(struct unit *unit);
/* overlap.c — loops that fill tiles load the next round's elements before they multiply. */
smelt_status pass_ptx_overlap(struct unit *unit);
/* bits.c — loads of vectors of bits become loads of vectors of bytes. */
smelt_status pass_ptx_bits(struct unit *unit);
/* convert.c — floats become 32-bit integers by the GPU's own instruction. */
smelt_status pass_ptx_convert(struct unit *unit);
/* halves.c — bfloats of loaded vectors become floats by one operation on a word of two. */
smelt_status pass_ptx_halves(struct unit *unit);
/* funnel.c — shifts of two words become funnel shifts. After LLVM's passes, which do not know the assembly.
 */
smelt_status pass_ptx_funnel(struct unit *unit);
/* divisions.c — divisions of neighbours by the same number become one division and comparisons. */
smelt_status pass_ptx_divisions(struct unit *unit);
/* floors.c — comparisons of floats that are known not to be tiny, or not to be great. */
smelt_status pass_ptx_floors(struct unit *unit);
/* powers.c — products by powers of two that are known not to be great need one factor instead of two. */
smelt_status pass_ptx_powers(struct unit *unit);
/* extremes.c — the greater or smaller one of two floats in three instructions. */
smelt_status pass_ptx_extremes(struct unit *unit);
/* … what the select `(x < y) | isnan(x) ? y : x` computes: 1, the greater one; -1, the smaller one; 0,
 * something else. */
int ptx_extreme_of(LLVMValueRef select, LLVMValueRef *x, LLVMValueRef *y);
/* zero_signs.c — choices between floats keep the sign of zero. Last, before code.c. */
smelt_status pass_ptx_zero_signs(struct unit *unit);
/* counters.c — addresses in a loop whose distances do not change in it share one counter. */
smelt_status pass_ptx_counters(struct unit *unit);
/* wide.c — whether an instruction loads from device memory, LLVM's or assembly. */
bool ptx_is_load(LLVMValueRef instruction);
/* registers.c — loops that load a lot in each round get as many registers as the loaded values need. */
smelt_status pass_ptx_registers(struct unit *unit);
/* previous.c — the kernel may start before the previous one on its stream has ended, and waits for it. */
smelt_status pass_ptx_previous(struct unit *unit);
/* uniform.c — marks branches that all lanes of a warp take alike. Last, before code.c. */
smelt_status pass_ptx_uniform(struct unit *unit);
/* … adds the PTX to `out`, with these branches as such. */
struct text;
void ptx_mark_uniform(struct text *out, const char *ptx);
/* … an instruction's metadata: its result is the same in all lanes, although this cannot be seen. */
#define PTX_SAME "smelt.same"
/* globals.c — variables in an order in which LLVM prints them as they stand. */
smelt_status ptx_order_globals(struct unit *unit);
/* narrow.c — adds the PTX to `out`; 16-bit operations that the assembler gets wrong become 32-bit ones. */
void ptx_widen_narrow(struct text *out, const char *ptx);

/* parameters.c — for lower.c: loads from the kernel's parameter, built at the builder's place. */
LLVMValueRef ptx_parameter(struct unit *unit, LLVMTypeRef type, uint64_t offset);
/* … marks the load of a buffer's address as aligned (BUFFER_ALIGNMENT). */
void ptx_mark_aligned(struct unit *unit, LLVMValueRef load);
/* The slot of a binding, and its struct cuda_extent in tested code; -1: the image has no such binding. */
int64_t ptx_slot_offset(const struct image *image, int kind, int64_t index);
int64_t ptx_extent_offset(const struct image *image, int kind, int64_t index);
uint64_t ptx_parameter_bytes(const struct unit *unit);
/* Whether an address lies in the kernel's parameter; with `constant`, only at a constant place in it. */
bool ptx_is_in_parameter(const struct unit *unit, LLVMValueRef address, bool constant);

/* code.c — LLVM's passes with NVPTX's machine, and PTX at the end: into result->image or result->text. */
smelt_status pass_ptx_code(struct unit *unit);
/* … adds a property of the kernel, by its name among nvvm.annotations. */
void ptx_annotate(struct unit *unit, const char *what, uint32_t value);
bool ptx_is_annotated(struct unit *unit, const char *what);

/* code.c — the grid consists of clusters of so many threadgroups, which run at the same time. */
void ptx_set_cluster(struct unit *unit, uint32_t groups);

/* build.c — appends a line to the report of --why; does nothing without it. */
smelt_status ptx_note(struct unit *unit, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* … calls inline assembly: `result` NULL for none. */
LLVMValueRef ptx_assembly(struct unit *unit, const char *text, const char *constraints, LLVMTypeRef result,
                          LLVMValueRef *arguments, unsigned count, bool effects);
/* … the text of a call of inline assembly; NULL: it is another instruction. */
const char *ptx_assembly_text(LLVMValueRef instruction);
/* … whether an instruction multiplies matrices on tensor cores (mma.sync). */
bool ptx_is_product(LLVMValueRef instruction);
/* Whether lanes of a warp execute a call together: it must not move under a condition that only some meet. */
bool ptx_is_convergent(LLVMValueRef call);
/* Reads a special register: ptx_register(unit, "tid.x"). */
LLVMValueRef ptx_register(struct unit *unit, const char *name);

#endif
