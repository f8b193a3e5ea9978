/* Constants at namespace scope that are computed from function constants have initialiser functions. Each one
 * is evaluated after those whose variables it reads: by globalopt, or, if only stores of constants remain, by
 * initialiser.c. If one cannot be evaluated, its variables have no value.
 *
 * pass_initialisers_listed requires: the module as clang wrote it. pass_initialisers_evaluated requires:
 * functions inlined. Establishes: no initialisers are left. */
#include "compiler/pass.h"

#include <llvm-c/Comdat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TABLE "llvm.global_ctors"
#define NAME "smelt_initialiser_"
#define MOST_VARIABLES 64
#define CONSTANT_SPACE 6

/* ---- Listing. */

struct listing {
    LLVMValueRef *functions;
    unsigned count, room;
};

static bool keep(struct listing *listing, LLVMValueRef function) {
    if (listing->count == listing->room) {
        unsigned room = listing->room ? 2 * listing->room : 64;
        LLVMValueRef *grown = realloc(listing->functions, room * sizeof *grown);
        if (!grown) return false;
        listing->functions = grown;
        listing->room = room;
    }
    listing->functions[listing->count++] = function;
    /* Nothing calls it any longer; it is kept for its name. */
    LLVMSetLinkage(function, LLVMExternalLinkage);
    return true;
}

/* The flag that records whether a template's variable is initialised: here each initialiser runs once. */
static void drop_flag(LLVMValueRef flag) {
    for (LLVMUseRef use = LLVMGetFirstUse(flag), next; use; use = next) {
        LLVMValueRef user = LLVMGetUser(use);
        next = LLVMGetNextUse(use);
        if (LLVMIsALoadInst(user)) LLVMReplaceAllUsesWith(user, LLVMConstNull(LLVMTypeOf(user)));
        if (LLVMIsALoadInst(user) || LLVMIsAStoreInst(user)) LLVMInstructionEraseFromParent(user);
    }
}

/* clang calls the initialisers of a file one after another from one function. */
static bool keep_called(struct listing *listing, LLVMValueRef caller) {
    FOR_EACH_BLOCK(block, caller)
    FOR_EACH_INSTRUCTION(instruction, block) {
        if (!LLVMIsACallInst(instruction)) continue;
        LLVMValueRef callee = LLVMGetCalledValue(instruction);
        if (!LLVMIsAFunction(callee) || LLVMIsDeclaration(callee)) continue;
        if (!keep(listing, callee)) return false;
    }
    return true;
}

/* The functions that an item of the table calls. */
static bool keep_item(struct listing *listing, LLVMValueRef function) {
    size_t length;
    if (!LLVMIsAFunction(function)) return true;
    if (strncmp(LLVMGetValueName2(function, &length), "_GLOBAL__", 9) != 0) {
        LLVMSetComdat(function, NULL);
        return keep(listing, function);
    }
    bool kept = keep_called(listing, function);
    LLVMDeleteFunction(function);
    return kept;
}

static bool keep_table(struct listing *listing, LLVMValueRef table) {
    LLVMValueRef values = LLVMGetInitializer(table);
    unsigned items = (unsigned)LLVMGetArrayLength2(LLVMTypeOf(values));
    LLVMValueRef *functions = calloc(items ? items : 1, sizeof *functions);
    bool kept = functions != NULL;
    for (unsigned i = 0; kept && i < items; i++)
        functions[i] = LLVMGetAggregateElement(LLVMGetAggregateElement(values, i), 1);
    LLVMDeleteGlobal(table);
    for (unsigned i = 0; kept && i < items; i++) kept = keep_item(listing, functions[i]);
    free(functions);
    return kept;
}

/* Whether anything outside `function` uses the value, also through constants. */
static bool used_outside(LLVMValueRef value, LLVMValueRef function) {
    for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        bool outside = LLVMIsAInstruction(user)
                           ? LLVMGetBasicBlockParent(LLVMGetInstructionParent(user)) != function
                           : LLVMIsAGlobalVariable(user) || used_outside(user, function);
        if (outside) return true;
    }
    return false;
}

/* The table of absent arguments: the kernel does not name it, but pass_guarded_bindings reads it. */
static bool is_guards(LLVMValueRef global) {
    size_t length;
    return strcmp(LLVMGetValueName2(global, &length), GUARDS_NAME) == 0;
}

static bool reaches_outside(LLVMValueRef value, LLVMValueRef function) {
    if (LLVMIsAGlobalVariable(value))
        return !LLVMIsDeclaration(value) && (is_guards(value) || used_outside(value, function));
    if (!LLVMIsAConstantExpr(value)) return false;
    for (int i = 0; i < LLVMGetNumOperands(value); i++)
        if (reaches_outside(LLVMGetOperand(value, (unsigned)i), function)) return true;
    return false;
}

/* Whether the function uses a variable that others use as well. */
static bool initialises_what_is_used(LLVMValueRef function) {
    FOR_EACH_BLOCK(block, function)
    FOR_EACH_INSTRUCTION(instruction, block)
    for (int i = 0; i < LLVMGetNumOperands(instruction); i++)
        if (reaches_outside(LLVMGetOperand(instruction, (unsigned)i), function)) return true;
    return false;
}

/* Variables used only by their initialisers belong to another entry: they are removed, and with them the
 * function constants that they depend on. */
static smelt_status drop_unused(struct unit *unit, struct listing *listing) {
    for (bool dropped = true; dropped;) {
        unsigned kept = 0;
        for (unsigned i = 0; i < listing->count; i++)
            if (initialises_what_is_used(listing->functions[i]))
                listing->functions[kept++] = listing->functions[i];
            else
                LLVMDeleteFunction(listing->functions[i]);
        dropped = kept < listing->count;
        listing->count = kept;
        if (dropped) TRY(run_passes(unit, "globaldce"));
    }
    return SMELT_OK;
}

/* clang assumes that variables of templates may be defined in several files. */
static void own_variables(struct unit *unit) {
    for (LLVMValueRef g = LLVMGetFirstGlobal(unit->module); g; g = LLVMGetNextGlobal(g)) {
        LLVMLinkage linkage = LLVMGetLinkage(g);
        size_t length;
        if (strncmp(LLVMGetValueName2(g, &length), "_ZGV", 4) == 0) drop_flag(g);
        if (linkage == LLVMLinkOnceODRLinkage || linkage == LLVMWeakODRLinkage) {
            LLVMSetLinkage(g, LLVMInternalLinkage);
            LLVMSetComdat(g, NULL);
        }
    }
}

static void name_listed(const struct listing *listing) {
    for (unsigned i = 0; i < listing->count; i++) {
        char name[64];
        snprintf(name, sizeof name, NAME "%u", i);
        LLVMSetValueName2(listing->functions[i], name, strlen(name));
    }
}

smelt_status pass_initialisers_listed(struct unit *unit) {
    LLVMValueRef table = LLVMGetNamedGlobal(unit->module, TABLE);
    if (!table || !LLVMGetInitializer(table)) return SMELT_OK;
    own_variables(unit);
    struct listing listing = {0};
    smelt_status status = keep_table(&listing, table)
                              ? drop_unused(unit, &listing)
                              : unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for the initialisers");
    name_listed(&listing);
    free(listing.functions);
    return status;
}

/* ---- Evaluation. */

struct initialiser {
    LLVMValueRef function;
    LLVMValueRef variables[MOST_VARIABLES]; /* that it uses, other than constants */
    bool own[MOST_VARIABLES];               /* it initialises the variable */
    int count;
    bool all; /* it uses more */
    bool ready, done;
};

static void touch(struct initialiser *one, LLVMValueRef value, bool own) {
    for (int steps = 0; steps < 8 && LLVMIsAConstantExpr(value); steps++) value = LLVMGetOperand(value, 0);
    if (!LLVMIsAGlobalVariable(value) || LLVMIsGlobalConstant(value)) return;
    for (int i = 0; i < one->count; i++)
        if (one->variables[i] == value) {
            one->own[i] |= own;
            return;
        }
    if (one->count == MOST_VARIABLES) {
        one->all = true;
        return;
    }
    one->own[one->count] = own;
    one->variables[one->count++] = value;
}

static void read_touched(struct initialiser *one) {
    one->count = 0;
    FOR_EACH_BLOCK(block, one->function)
    FOR_EACH_INSTRUCTION(instruction, block)
    for (int i = 0; i < LLVMGetNumOperands(instruction); i++) {
        /* clang marks the end of a variable's initialisation in this way. */
        bool own = strncmp(called_name(instruction), "llvm.invariant.start", 20) == 0 ||
                   (LLVMIsAStoreInst(instruction) && i == 1);
        touch(one, LLVMGetOperand(instruction, (unsigned)i), own);
    }
}

/* Whether `reader` uses a variable that `writer` initialises. */
static bool reads_from(const struct initialiser *reader, const struct initialiser *writer) {
    if (reader->all || writer->all) return true;
    for (int i = 0; i < reader->count; i++)
        for (int k = 0; k < writer->count; k++)
            if (writer->own[k] && reader->variables[i] == writer->variables[k]) return true;
    return false;
}

static void set_table(struct unit *unit, struct initialiser *list, int count) {
    LLVMTypeRef fields[3] = {type_i32(unit), type_pointer(unit), type_pointer(unit)};
    LLVMTypeRef type = LLVMStructTypeInContext(unit->context, fields, 3, false);
    LLVMValueRef *items = calloc((size_t)count, sizeof *items);
    unsigned ready = 0;
    for (int i = 0; items && i < count; i++) {
        if (!list[i].ready) continue;
        LLVMValueRef parts[3] = {constant_i32(unit, 65535), list[i].function,
                                 LLVMConstNull(type_pointer(unit))};
        items[ready++] = LLVMConstStructInContext(unit->context, parts, 3, false);
    }
    LLVMValueRef table = LLVMAddGlobal(unit->module, LLVMArrayType2(type, ready), TABLE);
    LLVMSetLinkage(table, LLVMAppendingLinkage);
    LLVMSetInitializer(table, LLVMConstArray2(type, items, ready));
    free(items);
}

/* Whether globalopt left the function in the table. */
static bool is_left(LLVMValueRef values, LLVMValueRef function) {
    for (unsigned i = 0; values && i < LLVMGetArrayLength2(LLVMTypeOf(values)); i++)
        if (LLVMGetAggregateElement(LLVMGetAggregateElement(values, i), 1) == function) return true;
    return false;
}

/* A variable with a value is constant from now on. */
static void settle(struct initialiser *one) {
    for (int i = 0; i < one->count; i++)
        if (LLVMGetPointerAddressSpace(LLVMTypeOf(one->variables[i])) == CONSTANT_SPACE &&
            !LLVMIsDeclaration(one->variables[i]))
            LLVMSetGlobalConstant(one->variables[i], true);
}

static smelt_status finish_round(struct unit *unit, struct initialiser *list, int count) {
    LLVMValueRef table = LLVMGetNamedGlobal(unit->module, TABLE);
    LLVMValueRef values = table ? LLVMGetInitializer(table) : NULL;
    bool any_left = false;
    for (int i = 0; i < count; i++) {
        if (!list[i].ready) continue;
        list[i].done = true;
        list[i].ready = is_left(values, list[i].function); /* from here on: left */
        any_left |= list[i].ready;
    }
    if (table) LLVMDeleteGlobal(table);
    if (any_left) TRY(run_passes(unit, CLEAN_FUNCTIONS));
    for (int i = 0; i < count; i++) {
        if (!list[i].done || !list[i].function) continue;
        /* globalopt may have replaced variables. */
        read_touched(&list[i]);
        if (list[i].ready && !initialiser_apply(unit, list[i].function))
            TRY(constants_forget(unit, list[i].function));
        settle(&list[i]);
        LLVMDeleteFunction(list[i].function);
        list[i].function = NULL;
        list[i].ready = false;
    }
    return SMELT_OK;
}

/* Initialisers that read only initialised variables; if all wait for each other, the first one. */
static bool choose_ready(struct initialiser *list, int count) {
    int first = -1;
    bool any = false;
    for (int i = 0; i < count; i++) {
        list[i].ready = !list[i].done;
        if (list[i].done) continue;
        if (first < 0) first = i;
        for (int k = 0; k < count && list[i].ready; k++)
            list[i].ready = k == i || list[k].done || !reads_from(&list[i], &list[k]);
        any |= list[i].ready;
    }
    if (!any && first >= 0) list[first].ready = true;
    return first >= 0;
}

static smelt_status evaluate(struct unit *unit, struct initialiser *list, int count) {
    while (true) {
        for (int i = 0; i < count; i++)
            if (!list[i].done) read_touched(&list[i]);
        if (!choose_ready(list, count)) return SMELT_OK;
        set_table(unit, list, count);
        TRY(run_passes(unit, "globalopt"));
        TRY(finish_round(unit, list, count));
    }
}

smelt_status pass_initialisers_evaluated(struct unit *unit) {
    char name[64];
    int count = 0;
    for (;; count++) {
        snprintf(name, sizeof name, NAME "%d", count);
        if (!LLVMGetNamedFunction(unit->module, name)) break;
    }
    if (!count) return SMELT_OK;
    struct initialiser *list = calloc((size_t)count, sizeof *list);
    if (!list) return unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for %d initialisers", count);
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, NAME "%d", i);
        list[i].function = LLVMGetNamedFunction(unit->module, name);
    }
    smelt_status status = evaluate(unit, list, count);
    free(list);
    return status;
}
