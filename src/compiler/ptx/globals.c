/* The order of variables. LLVM 19 prints the variables that another one's value refers to before it, in an
 * order that depends on their addresses in this process. Each is therefore put behind those that its value
 * refers to. Variables are then printed as they stand in the module, and the same source gives the same PTX.
 *
 * Requires: the module in its final form. Establishes: values of variables refer only to earlier variables.
 */
#include "base/arena.h"
#include "compiler/ptx/ptx.h"

struct ordering {
    struct unit *unit;
    struct arena arena;
    LLVMValueRef *globals;
    bool *visited;
    int count;
};

/* Marks the variables that a constant refers to. Returns whether there are any. */
static bool find_references(const struct ordering *o, LLVMValueRef constant, bool *found) {
    bool any = false;
    if (LLVMIsAGlobalVariable(constant)) {
        for (int i = 0; i < o->count; i++) found[i] |= o->globals[i] == constant;
        return true;
    }
    int operands = LLVMIsAFunction(constant) ? 0 : LLVMGetNumOperands(constant);
    for (int i = 0; i < operands; i++)
        any |= find_references(o, LLVMGetOperand(constant, (unsigned)i), found);
    return any;
}

/* To the end of the module. LLVM-C cannot move a variable: a copy takes its place. */
static LLVMValueRef move_to_end(struct ordering *o, LLVMValueRef old) {
    size_t length;
    const char *name = LLVMGetValueName2(old, &length);
    name = arena_copy(&o->arena, name, length);
    LLVMValueRef copy = LLVMAddGlobalInAddressSpace(o->unit->module, LLVMGlobalGetValueType(old), "",
                                                    LLVMGetPointerAddressSpace(LLVMTypeOf(old)));
    LLVMSetInitializer(copy, LLVMGetInitializer(old));
    LLVMSetLinkage(copy, LLVMGetLinkage(old));
    LLVMSetGlobalConstant(copy, LLVMIsGlobalConstant(old));
    LLVMSetUnnamedAddress(copy, LLVMGetUnnamedAddress(old));
    LLVMSetAlignment(copy, LLVMGetAlignment(old));
    LLVMReplaceAllUsesWith(old, copy);
    LLVMDeleteGlobal(old);
    if (name) LLVMSetValueName2(copy, name, length);
    return copy;
}

static void visit(struct ordering *o, int index) {
    if (o->visited[index]) return;
    o->visited[index] = true;
    bool *found = arena_alloc(&o->arena, (size_t)o->count);
    LLVMValueRef value = LLVMGetInitializer(o->globals[index]);
    if (!found || !value || !find_references(o, value, found)) return;
    for (int i = 0; i < o->count; i++)
        if (found[i]) visit(o, i);
    if (!o->arena.failed) o->globals[index] = move_to_end(o, o->globals[index]);
}

smelt_status ptx_order_globals(struct unit *unit) {
    struct ordering o = {.unit = unit};
    for (LLVMValueRef g = LLVMGetFirstGlobal(unit->module); g; g = LLVMGetNextGlobal(g)) o.count++;
    o.globals = arena_alloc(&o.arena, (size_t)(o.count + 1) * sizeof *o.globals);
    o.visited = arena_alloc(&o.arena, (size_t)o.count + 1);
    int i = 0;
    for (LLVMValueRef g = LLVMGetFirstGlobal(unit->module); g && !o.arena.failed; g = LLVMGetNextGlobal(g))
        o.globals[i++] = g;
    for (i = 0; i < o.count && !o.arena.failed; i++) visit(&o, i);
    bool failed = o.arena.failed;
    arena_free(&o.arena);
    return failed ? unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for %d variables", o.count)
                  : SMELT_OK;
}
