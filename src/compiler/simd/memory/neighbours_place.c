/* Where accesses of neighbouring elements are done together: loads where the first is, stores where the last
 * is. The others move there, which no access on the way may notice. */
#include "compiler/analysis/base.h"
#include "compiler/bounds/bounds.h"
#include "compiler/simd/memory/neighbours.h"

#include <string.h>

static unsigned space_of(LLVMValueRef access) {
    return LLVMGetPointerAddressSpace(LLVMTypeOf(access_address(access)));
}

/* Device and constant memory may be the same; the thread's own arrays are found by their addresses. */
static bool may_touch(struct simd *s, LLVMValueRef access, unsigned space) {
    unsigned other = space_of(access);
    if (other == 0) return !private_is(s, access_address(access));
    return (other == THREADGROUP_SPACE) == (space == THREADGROUP_SPACE);
}

static bool is_harmless_call(LLVMValueRef call) {
    const char *name = called_name(call);
    return strncmp(name, "llvm.", 5) == 0 && strncmp(name, "llvm.mem", 8) != 0 &&
           strncmp(name, "llvm.masked", 11) != 0;
}

static int first_member(const struct neighbours *group) {
    int n = 0;
    while (!group->accesses[n]) n++;
    return n;
}

static bool has_member(const struct neighbours *group, LLVMValueRef i) {
    for (int n = 0; n < group->count; n++)
        if (group->accesses[n] == i) return true;
    return false;
}

/* Whether the access may pass the call: loads move before it, stores after it. A test (bounds.c) stays before
 * the accesses that it tests, which are at the same spot. When a test fails, what was stored is undefined. */
static bool may_pass(struct simd *s, LLVMValueRef call, LLVMValueRef access) {
    if (intrinsic_of(call) != INTRINSIC_INSIDE) return is_harmless_call(call);
    if (!access_is_load(access)) return true;
    struct spot tested = spot_of(s, LLVMGetOperand(call, INSIDE_ADDRESS), 1),
                own = spot_of(s, access_address(access), 1);
    return !spot_is_same(&tested, &own);
}

/* Whether the access, which is done at `order`, touches no member of the group that passes it. Loads move up,
 * so those after the access pass it; stores move down, so those before it do. */
static bool lets_pass(struct simd *s, const struct neighbours *group, LLVMValueRef access, int order) {
    int low = first_member(group);
    LLVMValueRef lowest = group->accesses[low];
    bool loads = access_is_load(lowest);
    int64_t size = access_size(s, lowest), distance;
    if (!may_touch(s, access, space_of(lowest))) return true;
    struct base own = base_of(s->unit, access_address(lowest)),
                other = base_of(s->unit, access_address(access));
    if (base_are_distinct(s->unit, &own, &other)) return true;
    if (!spot_distance(s, access_address(lowest), access_address(access), &distance)) return false;
    for (int n = low; n < group->count; n++) {
        int64_t at = (n - low) * size;
        if (!group->accesses[n]) continue;
        bool passes = (value_of(s, group->accesses[n])->order > order) == loads;
        if (passes && distance < at + size && at < distance + access_size(s, access)) return false;
    }
    return true;
}

/* lets_pass for the access and, if a group of loads is done in its place, for each load of that group. */
static bool all_let_pass(struct simd *s, const struct neighbours *group, LLVMValueRef access) {
    const struct neighbours *others = access_is_load(access) ? value_of(s, access)->neighbours : NULL;
    if (!lets_pass(s, group, access, value_of(s, access)->order)) return false;
    for (int n = 0; others && others->place == access && n < others->count; n++) {
        LLVMValueRef other = others->accesses[n];
        if (other && !lets_pass(s, group, other, value_of(s, other)->order)) return false;
    }
    return true;
}

#define LONGEST_WAY 2000

/* Whether nothing between the first and the last is affected if all are done together. Groups of loads must
 * be found before groups of stores: stores that move down must not pass loads that have moved up. */
static bool can_move(struct simd *s, const struct neighbours *group, LLVMValueRef first, LLVMValueRef last) {
    bool loads = access_is_load(first);
    int steps = 0;
    for (LLVMValueRef i = first; i != last; i = LLVMGetNextInstruction(i)) {
        if (!i || ++steps > LONGEST_WAY) return false;
        if (has_member(group, i)) continue;
        if (LLVMIsAAtomicRMWInst(i) || LLVMIsAAtomicCmpXchgInst(i) || LLVMIsAFenceInst(i)) return false;
        if (LLVMIsACallInst(i) && !may_pass(s, i, first)) return false;
        if (!LLVMIsALoadInst(i) && !LLVMIsAStoreInst(i)) continue;
        if (LLVMGetOrdering(i) != LLVMAtomicOrderingNotAtomic) return false;
        if ((!loads || LLVMIsAStoreInst(i)) && !all_let_pass(s, group, i)) return false;
    }
    return true;
}

bool neighbours_find_place(struct simd *s, struct neighbours *group, struct access *const *members, int count,
                           int64_t bytes) {
    LLVMValueRef first = members[0]->instruction, last = first;
    for (int n = 0; n < count; n++) {
        LLVMValueRef i = members[n]->instruction;
        if (value_of(s, i)->order < value_of(s, first)->order) first = i;
        if (value_of(s, i)->order > value_of(s, last)->order) last = i;
    }
    group->place = access_is_load(first) ? first : last;
    for (int n = 0; n < count; n++)
        if (members[n]->instruction == group->place) group->bytes = bytes - members[n]->place.bytes;
    return can_move(s, group, first, last);
}
