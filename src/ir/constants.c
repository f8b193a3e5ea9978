/* Gives function constants their values, so that the optimiser folds them, and everything computed from them.
 *
 * The rewriter declares them as symbols "smelt_constant_<index> <name>", or "smelt_constant_#<k> <name>" with
 * the index in the integer smelt_constant_index_<k>. Those without a value stay declarations: where the
 * optimised kernel still reads one, pass_constants_used refuses it by name. Constants at namespace scope that
 * are computed from them have initialiser functions, which globalopt evaluates one by one.
 *
 * What the entry names, and what it cannot do without, is listed in result->constants; where that list is all
 * that is asked for, nothing is refused. */
#include "ir/pass.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "smelt_constant_"
#define INDEX_PREFIX "smelt_constant_index_"
#define UNSET_PREFIX "smelt_unset_"
#define INITIALISERS "llvm.global_ctors"

static const smelt_constant *find(const struct compile_request *request, long index) {
    for (const smelt_constant *c = request->constants; c && c->dtype != SMELT_NO_DTYPE; c++)
        if (c->index == index) return c;
    return NULL;
}

static LLVMValueRef value_as(LLVMTypeRef type, const smelt_constant *constant) {
    bool real = constant->dtype == SMELT_FLOAT16 || constant->dtype == SMELT_BFLOAT16 ||
                constant->dtype == SMELT_FLOAT32 || constant->dtype == SMELT_FLOAT64;
    switch (LLVMGetTypeKind(type)) {
    case LLVMIntegerTypeKind: {
        long long integer = real ? (long long)constant->value.real : constant->value.integer;
        if (constant->dtype == SMELT_BOOL) integer = integer != 0;
        return LLVMConstInt(type, (unsigned long long)integer, true);
    }
    case LLVMHalfTypeKind:
    case LLVMBFloatTypeKind:
    case LLVMFloatTypeKind:
        return LLVMConstReal(type, real ? constant->value.real : (double)constant->value.integer);
    default:
        return NULL;
    }
}

static uint32_t dtype_of(LLVMTypeRef type) {
    switch (LLVMGetTypeKind(type)) {
    case LLVMHalfTypeKind:
        return SMELT_FLOAT16;
    case LLVMBFloatTypeKind:
        return SMELT_BFLOAT16;
    case LLVMFloatTypeKind:
        return SMELT_FLOAT32;
    case LLVMIntegerTypeKind:
        switch (LLVMGetIntTypeWidth(type)) {
        case 1:
        case 8:
            return SMELT_BOOL;
        case 16:
            return SMELT_INT16;
        case 32:
            return SMELT_INT32;
        case 64:
            return SMELT_INT64;
        default:
            return SMELT_NO_DTYPE;
        }
    default:
        return SMELT_NO_DTYPE;
    }
}

static struct constant_use *listed(struct unit *unit, long index) {
    for (int i = 0; i < unit->result->constant_count; i++)
        if (unit->result->constants[i].index == index) return &unit->result->constants[i];
    return NULL;
}

/* Once an index. */
static smelt_status list_constant(struct unit *unit, long index, const char *name, LLVMTypeRef type) {
    struct compile_result *result = unit->result;
    if (listed(unit, index)) return SMELT_OK;
    size_t count = (size_t)result->constant_count + 1;
    struct constant_use *grown = realloc(result->constants, count * sizeof *grown);
    if (!grown) return unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for %zu constants", count);
    result->constants = grown;
    grown += result->constant_count++;
    *grown = (struct constant_use){.index = (int32_t)index, .dtype = dtype_of(type)};
    snprintf(grown->name, sizeof grown->name, "%s", name);
    return SMELT_OK;
}

/* `blamed`: "<index> <name>", several with ; between. */
static void mark_required(struct unit *unit, const char *blamed) {
    for (; blamed; blamed = strchr(blamed, ';')) {
        blamed += *blamed == ';';
        struct constant_use *use = listed(unit, strtol(blamed, NULL, 10));
        if (use) use->required = true;
    }
}

/* is_function_constant_defined(x) → whether a value was given. */
static void fold_defined(struct unit *unit, LLVMValueRef global, bool defined) {
    LLVMValueRef query = LLVMGetNamedFunction(unit->module, "__smelt_constant_defined");
    if (!query) return;
    for (LLVMUseRef use = LLVMGetFirstUse(query), next; use; use = next) {
        next = LLVMGetNextUse(use);
        LLVMValueRef call = LLVMGetUser(use);
        if (!LLVMIsACallInst(call)) continue;
        LLVMValueRef argument = LLVMGetOperand(call, 0);
        while (LLVMIsAConstantExpr(argument) || LLVMIsAAddrSpaceCastInst(argument))
            argument = LLVMGetOperand(argument, 0);
        if (argument != global) continue;
        LLVMReplaceAllUsesWith(call, LLVMConstInt(LLVMTypeOf(call), defined, false));
        LLVMInstructionEraseFromParent(call);
    }
}

/* The name without clang's \1, which says that an asm label is not mangled. */
static const char *symbol_name(LLVMValueRef global) {
    size_t length;
    const char *name = LLVMGetValueName2(global, &length);
    return *name == 1 ? name + 1 : name;
}

static bool has_prefix(const char *name, const char *prefix) {
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool is_function_constant(LLVMValueRef global) {
    return has_prefix(symbol_name(global), PREFIX) && !has_prefix(symbol_name(global), INDEX_PREFIX);
}

static smelt_status read_index(struct unit *unit, const char *text, long *index) {
    char name[64], *end;
    if (*text != '#') {
        *index = strtol(text, &end, 10);
        return SMELT_OK;
    }
    snprintf(name, sizeof name, INDEX_PREFIX "%ld", strtol(text + 1, &end, 10));
    LLVMValueRef global = LLVMGetNamedGlobal(unit->module, name);
    LLVMValueRef value = global ? LLVMGetInitializer(global) : NULL;
    if (!value || !LLVMIsAConstantInt(value))
        return unit_fail(unit, SMELT_ERROR_UNSUPPORTED,
                         "the index of function constant '%s' is not a constant",
                         *end == ' ' ? end + 1 : end);
    *index = LLVMConstIntGetSExtValue(value);
    return SMELT_OK;
}

static smelt_status set_value(struct unit *unit, LLVMValueRef global) {
    long index = 0;
    const char *name = symbol_name(global) + strlen(PREFIX);
    TRY(read_index(unit, name, &index));
    const smelt_constant *constant = find(unit->request, index);
    const char *word = strchr(name, ' ');
    TRY(list_constant(unit, index, word ? word + 1 : "", LLVMGlobalGetValueType(global)));
    fold_defined(unit, global, constant != NULL);
    if (!constant) {
        /* Under the evaluated index, for messages. */
        char renamed[512];
        snprintf(renamed, sizeof renamed, PREFIX "%ld%s", index, word ? word : "");
        LLVMSetValueName2(global, renamed, strlen(renamed));
        return SMELT_OK;
    }
    LLVMValueRef value = value_as(LLVMGlobalGetValueType(global), constant);
    if (!value)
        return unit_fail(unit, SMELT_ERROR_UNSUPPORTED, "function constant %ld is not a scalar", index);
    LLVMSetInitializer(global, value);
    LLVMSetGlobalConstant(global, true);
    LLVMSetLinkage(global, LLVMInternalLinkage);
    return SMELT_OK;
}

#define MAX_INITIALISERS 4096

/* clang collects the initialisers into one function; listed singly, one that cannot be evaluated does not
 * stop the others. */
static void list_initialisers(struct unit *unit) {
    LLVMValueRef table = LLVMGetNamedGlobal(unit->module, INITIALISERS), values, record, caller,
                 items[MAX_INITIALISERS];
    unsigned count = 0;
    if (!table || !(values = LLVMGetInitializer(table)) || LLVMGetArrayLength2(LLVMTypeOf(values)) != 1)
        return;
    record = LLVMGetAggregateElement(values, 0);
    caller = LLVMGetAggregateElement(record, 1);
    if (!LLVMIsAFunction(caller)) return;
    FOR_EACH_BLOCK(block, caller)
    FOR_EACH_INSTRUCTION(instruction, block) {
        if (!LLVMIsACallInst(instruction) || count == MAX_INITIALISERS) continue;
        LLVMValueRef fields[3] = {LLVMGetAggregateElement(record, 0), LLVMGetCalledValue(instruction),
                                  LLVMGetAggregateElement(record, 2)};
        items[count++] = LLVMConstStructInContext(unit->context, fields, 3, false);
    }
    if (!count || count == MAX_INITIALISERS) return;
    LLVMTypeRef type = LLVMTypeOf(items[0]);
    LLVMDeleteGlobal(table);
    table = LLVMAddGlobal(unit->module, LLVMArrayType2(type, count), INITIALISERS);
    LLVMSetLinkage(table, LLVMAppendingLinkage);
    LLVMSetInitializer(table, LLVMConstArray2(type, items, count));
}

/* Whether something outside `function` uses the value, be it through constants. */
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

/* Which arguments are absent: the kernel does not name the table, pass_guarded_bindings reads it. */
static bool is_guards(LLVMValueRef global) {
    return strcmp(symbol_name(global), GUARDS_NAME) == 0;
}

static bool reaches_outside(LLVMValueRef value, LLVMValueRef function) {
    if (LLVMIsAGlobalVariable(value))
        return !LLVMIsDeclaration(value) && (is_guards(value) || used_outside(value, function));
    if (!LLVMIsAConstantExpr(value)) return false;
    for (int i = 0; i < LLVMGetNumOperands(value); i++)
        if (reaches_outside(LLVMGetOperand(value, (unsigned)i), function)) return true;
    return false;
}

/* Whether the function names a variable that others name, too. */
static bool initialises_what_is_used(LLVMValueRef function) {
    FOR_EACH_BLOCK(block, function)
    FOR_EACH_INSTRUCTION(instruction, block)
    for (int i = 0; i < LLVMGetNumOperands(instruction); i++)
        if (reaches_outside(LLVMGetOperand(instruction, (unsigned)i), function)) return true;
    return false;
}

/* Variables that only their initialisers know are another entry's: they go, and with them the function
 * constants that they would be computed from. */
static smelt_status drop_initialisers(struct unit *unit) {
    for (bool dropped = true; dropped;) {
        LLVMValueRef table = LLVMGetNamedGlobal(unit->module, INITIALISERS), items[MAX_INITIALISERS];
        LLVMValueRef values = table ? LLVMGetInitializer(table) : NULL;
        unsigned all = values ? (unsigned)LLVMGetArrayLength2(LLVMTypeOf(values)) : 0, kept = 0;
        if (!all || all > MAX_INITIALISERS) return SMELT_OK;
        LLVMTypeRef type = LLVMGetElementType(LLVMTypeOf(values));
        for (unsigned i = 0; i < all; i++) {
            LLVMValueRef item = LLVMGetAggregateElement(values, i);
            LLVMValueRef function = LLVMGetAggregateElement(item, 1);
            if (!LLVMIsAFunction(function) || initialises_what_is_used(function)) items[kept++] = item;
        }
        dropped = kept < all;
        if (!dropped) return SMELT_OK;
        LLVMDeleteGlobal(table);
        if (kept) {
            table = LLVMAddGlobal(unit->module, LLVMArrayType2(type, kept), INITIALISERS);
            LLVMSetLinkage(table, LLVMAppendingLinkage);
            LLVMSetInitializer(table, LLVMConstArray2(type, items, kept));
        }
        TRY(run_passes(unit, "globaldce"));
    }
    return SMELT_OK;
}

smelt_status pass_constants(struct unit *unit) {
    list_initialisers(unit);
    TRY(drop_initialisers(unit));
    for (LLVMValueRef g = LLVMGetFirstGlobal(unit->module); g; g = LLVMGetNextGlobal(g))
        if (is_function_constant(g) && LLVMIsDeclaration(g)) TRY(set_value(unit, g));
    for (LLVMValueRef g = LLVMGetFirstGlobal(unit->module); g; g = LLVMGetNextGlobal(g))
        if (has_prefix(symbol_name(g), INDEX_PREFIX)) LLVMSetLinkage(g, LLVMInternalLinkage);
    return SMELT_OK;
}

#define BLAME_BYTES 1024

/* Adds to "<index> <name>;…" what still fits. */
static void add_blame(char blame[BLAME_BYTES], const char *blamed) {
    size_t length = strlen(blame);
    if (length + strlen(blamed) + 2 > BLAME_BYTES) return;
    snprintf(blame + length, BLAME_BYTES - length, "%s%s", length ? ";" : "", blamed);
}

/* `blamed`: "<index> <name>", several with ; between, or "" where it is no function constant's fault. */
static smelt_status refuse_unset(struct unit *unit, const char *blamed) {
    char *word;
    long index = strtol(blamed, &word, 10);
    if (word == blamed)
        return unit_fail(unit, SMELT_ERROR_UNSUPPORTED,
                         "a constant at namespace scope has a value that is not known when compiling");
    mark_required(unit, blamed);
    if (unit->request->output == COMPILE_CONSTANTS) return SMELT_OK;
    word += *word == ' ';
    return unit_fail(unit, SMELT_ERROR_INVALID_ARGUMENT,
                     "function constant %ld ('%.*s') has no value, and the kernel uses it", index,
                     (int)strcspn(word, ";"), word);
}

/* What an initialiser that could not be evaluated would have stored to becomes a declaration that names the
 * function constants to blame. */
static smelt_status forget_stores(struct unit *unit, LLVMValueRef initialiser) {
    char blame[BLAME_BYTES] = "";
    FOR_EACH_BLOCK(block, initialiser)
    FOR_EACH_INSTRUCTION(instruction, block)
    for (int i = 0; i < LLVMGetNumOperands(instruction); i++) {
        LLVMValueRef operand = LLVMGetOperand(instruction, (unsigned)i);
        if (!LLVMIsAGlobalVariable(operand) || !LLVMIsDeclaration(operand)) continue;
        if (is_function_constant(operand)) add_blame(blame, symbol_name(operand) + strlen(PREFIX));
        if (has_prefix(symbol_name(operand), UNSET_PREFIX))
            add_blame(blame, symbol_name(operand) + strlen(UNSET_PREFIX));
    }
    char name[BLAME_BYTES + sizeof UNSET_PREFIX];
    snprintf(name, sizeof name, UNSET_PREFIX "%s", blame);
    FOR_EACH_BLOCK(block, initialiser)
    FOR_EACH_INSTRUCTION(instruction, block) {
        if (!LLVMIsAStoreInst(instruction)) continue;
        LLVMValueRef target = LLVMGetOperand(instruction, 1);
        while (LLVMIsAConstantExpr(target) || LLVMIsAGetElementPtrInst(target))
            target = LLVMGetOperand(target, 0);
        if (!LLVMIsAGlobalVariable(target) || LLVMIsDeclaration(target)) continue;
        if (strcmp(symbol_name(target), GUARDS_NAME) == 0) {
            TRY(refuse_unset(unit, blame));
            LLVMSetInitializer(target, LLVMGetUndef(LLVMGlobalGetValueType(target)));
            continue;
        }
        LLVMSetValueName2(target, name, strlen(name));
        LLVMSetLinkage(target, LLVMExternalLinkage);
        LLVMSetInitializer(target, NULL);
    }
    return SMELT_OK;
}

smelt_status pass_constants_evaluated(struct unit *unit) {
    LLVMValueRef table = LLVMGetNamedGlobal(unit->module, INITIALISERS);
    LLVMValueRef values = table ? LLVMGetInitializer(table) : NULL;
    if (!values) return SMELT_OK;
    unsigned count = (unsigned)LLVMGetArrayLength2(LLVMTypeOf(values));
    for (unsigned i = 0; i < count; i++) {
        LLVMValueRef initialiser = LLVMGetAggregateElement(LLVMGetAggregateElement(values, i), 1);
        if (LLVMIsAFunction(initialiser)) TRY(forget_stores(unit, initialiser));
    }
    LLVMDeleteGlobal(table);
    return run_passes(unit, "globaldce");
}

smelt_status pass_constants_used(struct unit *unit) {
    TRY(run_passes(unit, "globaldce"));
    for (LLVMValueRef g = LLVMGetFirstGlobal(unit->module); g; g = LLVMGetNextGlobal(g)) {
        const char *name = symbol_name(g);
        bool unset = has_prefix(name, UNSET_PREFIX);
        if (!LLVMIsDeclaration(g) || !LLVMGetFirstUse(g) || (!unset && !is_function_constant(g))) continue;
        TRY(refuse_unset(unit, name + strlen(unset ? UNSET_PREFIX : PREFIX)));
    }
    return SMELT_OK;
}
