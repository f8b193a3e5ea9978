/* Contraction of vectors: within a statement, a product that is added or subtracted becomes a fused
 * multiply-add, as clang contracts scalars. Metal's vectors are structures with operators (prelude:
 * metal_vector), so that clang sees calls:
 *
 *     f += d * s        %product = call @operator*(ptr %d, float %s)    stored to %ref.tmp, part by part
 *                       call @operator+=(ptr %f, ptr %ref.tmp)
 *
 * clang names the memory of a temporary `ref.tmp`. A variable has its own name, and what a function returns
 * is not a call of the operator, so neither is contracted. The left operand of a sum comes first, as for
 * scalars. The library's own functions, and texts that turn contraction off somewhere, stay as they are.
 *
 * Requires: the module as clang wrote it. */
#include "abi/entry_names.h"
#include "compiler/pass.h"

#include <string.h>

#define OPERATORS "_ZN5metal8__vector"
#define TEMPORARY "ref.tmp"
#define MOST_PARTS 4

/* A call of a vector's operator: `name` is its mangled one. */
struct operation {
    LLVMValueRef call;
    char name[3];
    unsigned parts;
    LLVMTypeRef element;
};

/* `_ZN5metal8__vectorplIfLi3EEE…` adds vectors of three floats, `DF16_` are halves. */
static bool read_operation(struct unit *unit, LLVMValueRef call, struct operation *operation) {
    if (!LLVMIsACallInst(call) || LLVMGetNumArgOperands(call) != 2) return false;
    const char *name = called_name(call);
    if (strncmp(name, OPERATORS, strlen(OPERATORS)) != 0) return false;
    name += strlen(OPERATORS);
    if (strlen(name) < 8 || name[2] != 'I') return false;
    *operation = (struct operation){.call = call, .name = {name[0], name[1], 0}};
    name += 3;
    if (*name == 'f') {
        operation->element = LLVMFloatTypeInContext(unit->context);
        name++;
    } else if (strncmp(name, "DF16_", 5) == 0) {
        operation->element = LLVMHalfTypeInContext(unit->context);
        name += 5;
    } else {
        return false;
    }
    if (strncmp(name, "Li", 2) != 0 || name[2] < '2' || name[2] > '4' || name[3] != 'E') return false;
    operation->parts = (unsigned)(name[2] - '0');
    return true;
}

static bool is_called(const struct operation *operation, const char *name) {
    return strcmp(operation->name, name) == 0;
}

static bool is_call_of(LLVMValueRef value, const char *prefix) {
    return LLVMIsACallInst(value) && strncmp(called_name(value), prefix, strlen(prefix)) == 0;
}

/* The vector that is stored whole to memory from which `copy` takes it, and which nothing else uses. */
static LLVMValueRef copied_vector(LLVMValueRef copy) {
    LLVMValueRef source = LLVMGetOperand(copy, 1), vector = NULL;
    if (!LLVMIsAAllocaInst(source)) return NULL;
    for (LLVMUseRef use = LLVMGetFirstUse(source); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (user == copy) continue;
        if (vector || !LLVMIsAStoreInst(user) || LLVMGetOperand(user, 1) != source) return NULL;
        vector = LLVMGetOperand(user, 0);
    }
    return vector;
}

/* The vector of which part `index` is stored, at this part's address. */
static LLVMValueRef stored_vector(LLVMValueRef address, unsigned index) {
    LLVMUseRef use = LLVMGetFirstUse(address);
    LLVMValueRef store = use && !LLVMGetNextUse(use) ? LLVMGetUser(use) : NULL;
    if (!store || !LLVMIsAStoreInst(store) || LLVMGetOperand(store, 1) != address) return NULL;
    LLVMValueRef part = LLVMGetOperand(store, 0);
    bool fits =
        LLVMIsAExtractValueInst(part) && LLVMGetNumIndices(part) == 1 && LLVMGetIndices(part)[0] == index;
    return fits ? LLVMGetOperand(part, 0) : NULL;
}

/* The vector that a user of a temporary stores there, whole or one part of it; NULL: it does something else.
 */
static LLVMValueRef vector_of(LLVMValueRef user, LLVMValueRef temporary, unsigned *parts) {
    uint64_t index;
    if (is_call_of(user, "llvm.memcpy.") && LLVMGetOperand(user, 0) == temporary) {
        *parts = MOST_PARTS;
        return copied_vector(user);
    }
    *parts = 1;
    bool part = LLVMIsAGetElementPtrInst(user) && LLVMGetNumOperands(user) == 3 &&
                is_constant_integer(LLVMGetOperand(user, 2), &index);
    return part ? stored_vector(user, (unsigned)index) : NULL;
}

/* The product of vectors of the sum's type that a temporary holds and only the sum reads. */
static bool read_product(struct unit *unit, const struct operation *sum, LLVMValueRef temporary,
                         struct operation *product) {
    size_t length;
    unsigned found = 0, parts;
    LLVMValueRef vector = NULL;
    if (!LLVMIsAAllocaInst(temporary) ||
        strncmp(LLVMGetValueName2(temporary, &length), TEMPORARY, strlen(TEMPORARY)) != 0)
        return false;
    for (LLVMUseRef use = LLVMGetFirstUse(temporary); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (user == sum->call || is_call_of(user, "llvm.lifetime.")) continue;
        LLVMValueRef stored = vector_of(user, temporary, &parts);
        if (!stored || (vector && stored != vector)) return false;
        vector = stored;
        found += parts;
    }
    return vector && found >= sum->parts && read_operation(unit, vector, product) &&
           is_called(product, "ml") && product->parts == sum->parts && product->element == sum->element;
}

/* Part `index` of an operand that is a vector in memory or a number. */
static LLVMValueRef part_of(struct unit *unit, const struct operation *of, LLVMValueRef operand,
                            unsigned index) {
    LLVMBuilderRef b = unit->builder;
    if (LLVMGetTypeKind(LLVMTypeOf(operand)) != LLVMPointerTypeKind) return operand;
    LLVMValueRef at = LLVMConstInt(type_i64(unit), index, false);
    return LLVMBuildLoad2(b, of->element, LLVMBuildInBoundsGEP2(b, of->element, operand, &at, 1, ""), "");
}

static bool is_operand(const struct operation *of, LLVMValueRef operand) {
    LLVMTypeRef type = LLVMTypeOf(operand);
    return LLVMGetTypeKind(type) == LLVMPointerTypeKind || type == of->element;
}

/* x * y + other, or its variants: `left`: the product is the left operand. */
static void fuse(struct unit *unit, const struct operation *sum, const struct operation *product, bool left) {
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef x[MOST_PARTS], y[MOST_PARTS], fused[MOST_PARTS];
    bool assigns = sum->name[1] == 'L' || sum->name[1] == 'I', subtracts = sum->name[0] == 'm';
    LLVMValueRef first = LLVMGetOperand(sum->call, 0), second = LLVMGetOperand(sum->call, 1);
    LLVMPositionBuilderBefore(b, product->call); /* where the operands are what the product takes */
    for (unsigned i = 0; i < sum->parts; i++) {
        x[i] = part_of(unit, sum, LLVMGetOperand(product->call, 0), i);
        y[i] = part_of(unit, sum, LLVMGetOperand(product->call, 1), i);
    }
    LLVMPositionBuilderBefore(b, sum->call);
    for (unsigned i = 0; i < sum->parts; i++) {
        LLVMValueRef other = part_of(unit, sum, left ? second : first, i);
        if (subtracts && left) other = LLVMBuildFNeg(b, other, "");
        LLVMValueRef factor = subtracts && !left ? LLVMBuildFNeg(b, x[i], "") : x[i];
        fused[i] = build_intrinsic(unit, "llvm.fma", sum->element, (LLVMValueRef[]){factor, y[i], other}, 3);
    }
    LLVMValueRef result = assigns ? first : LLVMGetPoison(LLVMTypeOf(sum->call));
    for (unsigned i = 0; i < sum->parts; i++) {
        LLVMValueRef at = LLVMConstInt(type_i64(unit), i, false);
        if (assigns)
            LLVMBuildStore(b, fused[i], LLVMBuildInBoundsGEP2(b, sum->element, first, &at, 1, ""));
        else
            result = LLVMBuildInsertValue(b, result, fused[i], i, "");
    }
    LLVMReplaceAllUsesWith(sum->call, result);
    LLVMInstructionEraseFromParent(sum->call);
}

/* Contracts a sum or a difference; false if it has no product. */
static bool contract(struct unit *unit, LLVMValueRef call) {
    struct operation sum, product;
    if (!read_operation(unit, call, &sum)) return false;
    bool assigns = is_called(&sum, "pL") || is_called(&sum, "mI");
    if (!assigns && !is_called(&sum, "pl") && !is_called(&sum, "mi")) return false;
    LLVMValueRef first = LLVMGetOperand(call, 0), second = LLVMGetOperand(call, 1);
    if (first == second || !is_operand(&sum, first) || !is_operand(&sum, second)) return false;
    bool left = !assigns && read_product(unit, &sum, first, &product);
    if (!left && !read_product(unit, &sum, second, &product)) return false;
    if (!is_operand(&product, LLVMGetOperand(product.call, 0)) ||
        !is_operand(&product, LLVMGetOperand(product.call, 1)))
        return false;
    fuse(unit, &sum, &product, left);
    return true;
}

static bool is_library(LLVMValueRef function) {
    static const char *const spaces[] = {"_ZN5metal", "_ZNK5metal", "_ZN7__smelt", "_ZN13__smelt_float"};
    size_t length;
    const char *name = LLVMGetValueName2(function, &length);
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        if (strncmp(name, spaces[i], strlen(spaces[i])) == 0) return true;
    return false;
}

smelt_status pass_contract(struct unit *unit) {
    LLVMValueRef apart = LLVMGetNamedGlobal(unit->module, APART_NAME);
    if (apart) {
        LLVMSetLinkage(apart, LLVMInternalLinkage); /* and nothing uses it */
        return SMELT_OK;
    }
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f)) {
        if (is_library(f)) continue;
        FOR_EACH_BLOCK(block, f)
        FOR_EACH_INSTRUCTION(call, block) {
            contract(unit, call);
        }
    }
    return SMELT_OK;
}
