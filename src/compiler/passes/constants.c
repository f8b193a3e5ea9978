/* Gives function constants their values, so that the optimiser folds them, and everything computed from them.
 *
 * The rewriter declares them as symbols "smelt_constant_<index> <name>", or "smelt_constant_#<k> <name>" with
 * the index in the integer smelt_constant_index_<k>. The integer smelt_constant_type_<index>_<k> says their
 * type. Those without a value stay declarations: where the optimised kernel still reads one,
 * pass_constants_used refuses it by name. Constants at namespace scope that are computed from them have
 * initialiser functions, which globalopt evaluates one by one.
 *
 * What the entry names, and what it cannot do without, is listed in result->constants; where that list is all
 * that is asked for, nothing is refused. */
#include "compiler/pass.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNSET_PREFIX "smelt_unset_"

static const smelt_constant *find(const struct compile_request *request, long index, const char *name) {
    for (const smelt_constant *c = request->constants; c && c->dtype != SMELT_NO_DTYPE; c++)
        if (constant_matches(c, index, name)) return c;
    return NULL;
}

/* ---- Values. The type of a constant is an element's dtype and a number of components. */

struct constant_type {
    smelt_dtype dtype;
    int count;
};

static bool is_real(smelt_dtype dtype) {
    return dtype == SMELT_FLOAT16 || dtype == SMELT_BFLOAT16 || dtype == SMELT_FLOAT32 ||
           dtype == SMELT_FLOAT64;
}

static const char *type_name(smelt_dtype dtype) {
#define X(upper, lower, bytes, source_name) {SMELT_##upper, #lower},
    static const struct {
        smelt_dtype dtype;
        const char *name;
    } names[] = {SMELT_DTYPE_TABLE(X)};
#undef X
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].dtype == dtype) return names[i].name;
    return "none";
}

/* Whether a whole number (negative, or given by the bits of an unsigned one) is a value of an integer type.
 */
static bool holds(smelt_dtype dtype, bool negative, uint64_t bits) {
    bool is_signed = dtype >= SMELT_INT8 && dtype <= SMELT_INT64;
    unsigned width = 8u << (unsigned)(dtype - (is_signed ? SMELT_INT8 : SMELT_UINT8));
    uint64_t half = UINT64_C(1) << (width - 1);
    if (negative) return is_signed && 0 - bits <= half;
    return is_signed ? bits < half : bits <= half - 1 + half;
}

/* Component `i` of the given value, as an element of LLVM's type `type`; NULL: not a value of dtype. */
static LLVMValueRef component_as(LLVMTypeRef type, smelt_dtype dtype, const smelt_constant *given, int i) {
    bool vector = given->count > 1, real = is_real(given->dtype);
    double number = vector ? given->value.reals[i] : given->value.real;
    int64_t integer = vector ? given->value.integers[i] : given->value.integer;
    bool negative = given->dtype >= SMELT_INT8 && given->dtype <= SMELT_INT64 && integer < 0;
    if (given->dtype == SMELT_BOOL) integer = integer != 0;
    if (is_real(dtype))
        return LLVMConstReal(type, real ? number : negative ? (double)integer : (double)(uint64_t)integer);
    if (dtype == SMELT_BOOL) return LLVMConstInt(type, real ? number != 0 : integer != 0, false);
    if (real) {
        if (!(number >= -9223372036854775808.0 && number < 9223372036854775808.0) ||
            number != (double)(int64_t)number)
            return NULL;
        integer = (int64_t)number;
        negative = integer < 0;
    }
    return holds(dtype, negative, (uint64_t)integer) ? LLVMConstInt(type, (uint64_t)integer, true) : NULL;
}

/* The components as a value of a type that holds them: a scalar, or a structure or array of scalars. NULL if
 * one does not fit. */
static LLVMValueRef value_as(LLVMTypeRef type, struct constant_type wanted, const smelt_constant *given,
                             int *next) {
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    LLVMValueRef parts[16];
    if (kind != LLVMStructTypeKind && kind != LLVMArrayTypeKind)
        return *next < wanted.count ? component_as(type, wanted.dtype, given, (*next)++) : LLVMGetUndef(type);
    unsigned count =
        kind == LLVMStructTypeKind ? LLVMCountStructElementTypes(type) : (unsigned)LLVMGetArrayLength2(type);
    if (count > 16) return NULL;
    for (unsigned i = 0; i < count; i++) {
        LLVMTypeRef part =
            kind == LLVMStructTypeKind ? LLVMStructGetTypeAtIndex(type, i) : LLVMGetElementType(type);
        parts[i] = value_as(part, wanted, given, next);
        if (!parts[i]) return NULL;
    }
    return kind == LLVMStructTypeKind ? LLVMConstNamedStruct(type, parts, count)
                                      : LLVMConstArray2(LLVMGetElementType(type), parts, count);
}

static struct constant_use *listed(struct unit *unit, long index) {
    for (int i = 0; i < unit->result->constant_count; i++)
        if (unit->result->constants[i].index == index) return &unit->result->constants[i];
    return NULL;
}

/* Lists each index once. */
static smelt_status list_constant(struct unit *unit, long index, const char *name, smelt_dtype dtype) {
    struct compile_result *result = unit->result;
    if (listed(unit, index)) return SMELT_OK;
    size_t count = (size_t)result->constant_count + 1;
    struct constant_use *grown = realloc(result->constants, count * sizeof *grown);
    if (!grown) return unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for %zu constants", count);
    result->constants = grown;
    grown += result->constant_count++;
    *grown = (struct constant_use){.index = (int32_t)index, .dtype = dtype};
    snprintf(grown->name, sizeof grown->name, "%s", name);
    return SMELT_OK;
}

/* `blamed`: "<index> <name>"; several are separated by semicolons. */
static void mark_required(struct unit *unit, const char *blamed) {
    for (; blamed; blamed = strchr(blamed, ';')) {
        char *end;
        blamed += *blamed == ';';
        long index = strtol(blamed, &end, 10);
        struct constant_use *use = end > blamed ? listed(unit, index) : NULL;
        if (use) use->required = true;
    }
}

/* is_function_constant_defined(x): whether a value was given. */
static void fold_defined(struct unit *unit, LLVMValueRef global, bool defined) {
    LLVMValueRef query = intrinsic_function(unit->module, INTRINSIC_CONSTANT_DEFINED);
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

/* The name without clang's \1, which marks an asm label as not mangled. */
static const char *symbol_name(LLVMValueRef global) {
    size_t length;
    const char *name = LLVMGetValueName2(global, &length);
    return *name == 1 ? name + 1 : name;
}

static bool has_prefix(const char *name, const char *prefix) {
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool is_function_constant(LLVMValueRef global) {
    const char *name = symbol_name(global);
    return has_prefix(name, CONSTANT_NAME) && !has_prefix(name, CONSTANT_INDEX_NAME) &&
           !has_prefix(name, CONSTANT_TYPE_NAME);
}

static smelt_status read_index(struct unit *unit, const char *text, long *index) {
    char name[64], *end;
    if (*text != '#') {
        *index = strtol(text, &end, 10);
        return SMELT_OK;
    }
    snprintf(name, sizeof name, CONSTANT_INDEX_NAME "%ld", strtol(text + 1, &end, 10));
    LLVMValueRef global = LLVMGetNamedGlobal(unit->module, name);
    LLVMValueRef value = global ? LLVMGetInitializer(global) : NULL;
    if (!value || !LLVMIsAConstantInt(value))
        return unit_fail(unit, SMELT_ERROR_UNSUPPORTED,
                         "the index of function constant '%s' is not a constant",
                         *end == ' ' ? end + 1 : end);
    *index = LLVMConstIntGetSExtValue(value);
    return SMELT_OK;
}

/* The type from smelt_constant_type_<index>_<k>; `name` begins with the index. */
static struct constant_type read_type(struct unit *unit, const char *name) {
    char prefix[64];
    snprintf(prefix, sizeof prefix, CONSTANT_TYPE_NAME "%.*s_", (int)strcspn(name, " "), name);
    for (LLVMValueRef g = LLVMGetFirstGlobal(unit->module); g; g = LLVMGetNextGlobal(g)) {
        LLVMValueRef code = has_prefix(symbol_name(g), prefix) ? LLVMGetInitializer(g) : NULL;
        if (!code || !LLVMIsAConstantInt(code)) continue;
        int value = (int)LLVMConstIntGetZExtValue(code);
        return (struct constant_type){(smelt_dtype)(value % 256), value / 256};
    }
    return (struct constant_type){SMELT_NO_DTYPE, 0};
}

/* "2.5", or "(1, 2, 3)". */
static void write_value(char *text, size_t size, const smelt_constant *given) {
    size_t length = 0;
    int count = given->count > 1 ? given->count : 1;
    bool real = is_real(given->dtype);
    for (int i = 0; i < count && length < size; i++) {
        const char *before = i ? ", " : count > 1 ? "(" : "";
        long long integer = (long long)given->value.integers[i];
        int added;
        if (real)
            added = snprintf(text + length, size - length, "%s%.9g", before, given->value.reals[i]);
        else if (given->dtype == SMELT_UINT64)
            added = snprintf(text + length, size - length, "%s%llu", before, (unsigned long long)integer);
        else
            added = snprintf(text + length, size - length, "%s%lld", before, integer);
        length += added > 0 ? (size_t)added : 0;
    }
    if (count > 1 && length < size) snprintf(text + length, size - length, ")");
}

static smelt_status fail_value(struct unit *unit, long index, const char *name, struct constant_type type,
                               const smelt_constant *given) {
    int count = given->count > 1 ? given->count : 1;
    if (!type.count)
        return unit_fail(unit, SMELT_ERROR_UNSUPPORTED,
                         "function constant %ld ('%s') is neither a scalar nor a vector", index, name);
    if (count != type.count)
        return unit_fail(unit, SMELT_ERROR_INVALID_ARGUMENT,
                         "function constant %ld ('%s') has %d component%s; %d %s given", index, name,
                         type.count, type.count > 1 ? "s" : "", count, count > 1 ? "are" : "is");
    char value[128];
    write_value(value, sizeof value, given);
    return unit_fail(unit, SMELT_ERROR_INVALID_ARGUMENT,
                     "function constant %ld ('%s') is %s (%s), which its type, %s, cannot hold", index, name,
                     value, type_name(given->dtype), type_name(type.dtype));
}

static smelt_status set_value(struct unit *unit, LLVMValueRef global) {
    long index = 0;
    const char *name = symbol_name(global) + strlen(CONSTANT_NAME);
    TRY(read_index(unit, name, &index));
    const char *space = strchr(name, ' '), *word = space ? space + 1 : "";
    struct constant_type type = read_type(unit, name);
    const smelt_constant *constant = find(unit->request, index, word);
    TRY(list_constant(unit, index, word, type.dtype));
    fold_defined(unit, global, constant != NULL);
    if (!constant) {
        /* With the evaluated index, for messages. */
        char renamed[512];
        snprintf(renamed, sizeof renamed, CONSTANT_NAME "%ld %s", index, word);
        LLVMSetValueName2(global, renamed, strlen(renamed));
        return SMELT_OK;
    }
    int next = 0, count = constant->count > 1 ? constant->count : 1;
    LLVMValueRef value =
        count == type.count ? value_as(LLVMGlobalGetValueType(global), type, constant, &next) : NULL;
    if (!value) return fail_value(unit, index, word, type, constant);
    LLVMSetInitializer(global, value);
    LLVMSetGlobalConstant(global, true);
    LLVMSetLinkage(global, LLVMInternalLinkage);
    return SMELT_OK;
}

smelt_status pass_constants(struct unit *unit) {
    for (LLVMValueRef g = LLVMGetFirstGlobal(unit->module); g; g = LLVMGetNextGlobal(g))
        if (is_function_constant(g) && LLVMIsDeclaration(g)) TRY(set_value(unit, g));
    for (LLVMValueRef g = LLVMGetFirstGlobal(unit->module); g; g = LLVMGetNextGlobal(g))
        if (has_prefix(symbol_name(g), CONSTANT_INDEX_NAME) || has_prefix(symbol_name(g), CONSTANT_TYPE_NAME))
            LLVMSetLinkage(g, LLVMInternalLinkage);
    return SMELT_OK;
}

#define BLAME_BYTES 1024

/* Adds as many of "<index> <name>;…" as fit. */
static void add_blame(char blame[BLAME_BYTES], const char *blamed) {
    const char *last = strrchr(blamed, ';');
    size_t length = strlen(blame), count = last ? (size_t)(last - blamed) : strlen(blamed);
    if (length + count + 2 > BLAME_BYTES) return;
    snprintf(blame + length, BLAME_BYTES - length, "%s%.*s", length ? ";" : "", (int)count, blamed);
}

/* `blamed`: "<index> <name>", several separated by semicolons, or the constant's own name if no function
 * constant is the cause. */
static smelt_status refuse_unset(struct unit *unit, const char *blamed) {
    char *word;
    long index = strtol(blamed, &word, 10);
    if (word == blamed)
        return unit_fail(unit, SMELT_ERROR_UNSUPPORTED,
                         "constant '%.*s' at namespace scope is computed in a way that is not supported: its "
                         "value is not known at compile time",
                         (int)strcspn(blamed, ";"), blamed);
    mark_required(unit, blamed);
    if (unit->request->output == COMPILE_CONSTANTS) return SMELT_OK;
    word += *word == ' ';
    return unit_fail(unit, SMELT_ERROR_INVALID_ARGUMENT,
                     "function constant %ld ('%.*s') has no value, and the kernel uses it", index,
                     (int)strcspn(word, ";"), word);
}

/* The targets of an initialiser that could not be evaluated become declarations whose names list the function
 * constants that caused it. */
/* Whether the instruction may write through its operand: the target of a store, or an argument of a call. */
static bool is_written(LLVMValueRef instruction, int operand) {
    if (LLVMIsAStoreInst(instruction)) return operand == 1;
    if (!LLVMIsACallInst(instruction)) return false;
    bool copy = strncmp(called_name(instruction), "llvm.memcpy", 11) == 0;
    return !has_prefix(called_name(instruction), "llvm.invariant") && !(copy && operand == 1);
}

smelt_status constants_forget(struct unit *unit, LLVMValueRef initialiser) {
    char blame[BLAME_BYTES] = "";
    FOR_EACH_BLOCK(block, initialiser)
    FOR_EACH_INSTRUCTION(instruction, block)
    for (int i = 0; i < LLVMGetNumOperands(instruction); i++) {
        LLVMValueRef operand = LLVMGetOperand(instruction, (unsigned)i);
        if (!LLVMIsAGlobalVariable(operand) || !LLVMIsDeclaration(operand)) continue;
        if (is_function_constant(operand)) add_blame(blame, symbol_name(operand) + strlen(CONSTANT_NAME));
        if (has_prefix(symbol_name(operand), UNSET_PREFIX))
            add_blame(blame, symbol_name(operand) + strlen(UNSET_PREFIX));
    }
    /* The semicolon separates the suffix that LLVM adds to a name in use. */
    char name[BLAME_BYTES + sizeof UNSET_PREFIX + 1];
    snprintf(name, sizeof name, UNSET_PREFIX "%s;", blame);
    FOR_EACH_BLOCK(block, initialiser)
    FOR_EACH_INSTRUCTION(instruction, block)
    for (int i = 0; i < LLVMGetNumOperands(instruction); i++) {
        LLVMValueRef target = LLVMGetOperand(instruction, (unsigned)i);
        if (!is_written(instruction, i)) continue;
        while (LLVMIsAConstantExpr(target) || LLVMIsAGetElementPtrInst(target))
            target = LLVMGetOperand(target, 0);
        if (!LLVMIsAGlobalVariable(target) || LLVMIsDeclaration(target) || LLVMIsGlobalConstant(target))
            continue;
        if (strcmp(symbol_name(target), GUARDS_NAME) == 0) {
            TRY(refuse_unset(unit, blame));
            LLVMSetInitializer(target, LLVMGetUndef(LLVMGlobalGetValueType(target)));
            continue;
        }
        if (!*blame) {
            char word[200];
            unit_plain_name(unit, target, word);
            snprintf(name, sizeof name, UNSET_PREFIX "%s;", word);
        }
        LLVMSetValueName2(target, name, strlen(name));
        LLVMSetLinkage(target, LLVMExternalLinkage);
        LLVMSetInitializer(target, NULL);
    }
    return SMELT_OK;
}

smelt_status pass_constants_used(struct unit *unit) {
    TRY(run_passes(unit, "globaldce"));
    for (LLVMValueRef g = LLVMGetFirstGlobal(unit->module); g; g = LLVMGetNextGlobal(g)) {
        const char *name = symbol_name(g);
        bool unset = has_prefix(name, UNSET_PREFIX);
        if (!LLVMIsDeclaration(g) || !LLVMGetFirstUse(g) || (!unset && !is_function_constant(g))) continue;
        TRY(refuse_unset(unit, name + strlen(unset ? UNSET_PREFIX : CONSTANT_NAME)));
    }
    return SMELT_OK;
}
