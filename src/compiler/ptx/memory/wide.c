/* Loads and stores of vectors at addresses that may be aligned for one instruction: either that instruction
 * or one per element, by predicates. Elements of less than four bytes are moved in words. */
#include "compiler/ptx/memory/align.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MOST_BYTES 16
#define MOST_PARTS 4

/* The registers of an access: elements, or words that contain several elements. */
struct form {
    LLVMTypeRef part; /* of a register */
    unsigned bytes;   /* of a register: 2, 4 or 8 */
    unsigned element; /* bytes */
    unsigned parts;
    char constraint; /* of a register */
};

struct writer {
    char text[2048];
    size_t length;
};

static void put(struct writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct writer *w, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int more = vsnprintf(w->text + w->length, sizeof w->text - w->length, format, arguments);
    va_end(arguments);
    if (more > 0) w->length += (size_t)more;
}

static struct form form_of(struct unit *unit, LLVMTypeRef type) {
    bool vector = LLVMGetTypeKind(type) == LLVMVectorTypeKind;
    LLVMTypeRef element = vector ? LLVMGetElementType(type) : type;
    unsigned size = (unsigned)LLVMABISizeOfType(unit->layout, element),
             count = vector ? LLVMGetVectorSize(type) : 1;
    struct form form = {.part = element, .bytes = size, .element = size, .parts = count};
    if (size < 4 && size * count > 1) {
        form.bytes = size * count < 4 ? 2 : 4;
        form.parts = size * count / form.bytes;
        form.part = LLVMIntTypeInContext(unit->context, 8 * form.bytes);
    } else if (LLVMGetTypeKind(element) == LLVMPointerTypeKind) {
        form.part = LLVMIntTypeInContext(unit->context, 8 * size);
    }
    bool real = LLVMGetTypeKind(form.part) == LLVMFloatTypeKind;
    bool wide_real = LLVMGetTypeKind(form.part) == LLVMDoubleTypeKind;
    form.constraint = real ? 'f' : wide_real ? 'd' : form.bytes == 8 ? 'l' : form.bytes == 4 ? 'r' : 'h';
    return form;
}

bool wide_access_exists(struct unit *unit, LLVMTypeRef type) {
    uint64_t bytes = LLVMABISizeOfType(unit->layout, type);
    LLVMTypeKind kind = LLVMGetTypeKind(LLVMGetElementType(type));
    bool known = kind == LLVMIntegerTypeKind || kind == LLVMHalfTypeKind || kind == LLVMBFloatTypeKind ||
                 kind == LLVMFloatTypeKind || kind == LLVMDoubleTypeKind;
    return known && bytes > LLVMABISizeOfType(unit->layout, LLVMGetElementType(type)) &&
           bytes <= MOST_BYTES && (bytes & (bytes - 1)) == 0 &&
           LLVMStoreSizeOfType(unit->layout, type) == bytes;
}

static const char *space_of(LLVMValueRef address) {
    unsigned space = LLVMGetPointerAddressSpace(LLVMTypeOf(address));
    return space == PTX_GLOBAL ? ".global" : space == PTX_SHARED ? ".shared" : "";
}

/* ---- The text. Registers are $0 …; the address is $a, the predicate $p. */

static void put_whole(struct writer *w, const struct form *form, bool load, const char *space, unsigned first,
                      unsigned a, unsigned p) {
    char list[64];
    int length = 0;
    for (unsigned i = 0; i < form->parts; i++)
        length += snprintf(list + length, sizeof list - (size_t)length, "%s$%u", i ? "," : "", first + i);
    char width[16] = "";
    if (form->parts > 1) snprintf(width, sizeof width, ".v%u", form->parts);
    const char *open = form->parts > 1 ? "{" : "", *close = form->parts > 1 ? "}" : "";
    put(w, "@$%u %s%s%s.b%u ", p, load ? "ld" : "st", space, width, 8 * form->bytes);
    if (load)
        put(w, "%s%s%s, [$%u]; ", open, list, close, a);
    else
        put(w, "[$%u], %s%s%s; ", a, open, list, close);
}

/* One register's elements, one access each. */
static void put_elements(struct writer *w, const struct form *form, bool load, const char *space,
                         unsigned part, unsigned a, unsigned p) {
    unsigned at = part * form->bytes, bits = 8 * form->element;
    const char *type = form->element == form->bytes ? "b" : "u";
    if (load)
        put(w, "@!$%u ld%s.%s%u $%u, [$%u+%u]; ", p, space, type, bits, part, a, at);
    else
        put(w, "@!$%u st%s.%s%u [$%u+%u], $%u; ", p, space, type, bits, a, at, part);
    for (unsigned e = form->element; e < form->bytes; e += form->element)
        if (load)
            put(w, "@!$%u ld%s.u%u t, [$%u+%u]; @!$%u mad.lo.u%u $%u, t, %u, $%u; ", p, space, bits, a,
                at + e, p, 8 * form->bytes, part, 1u << 8 * e, part);
        else
            put(w, "@!$%u shr.u%u t, $%u, %u; @!$%u st%s.u%u [$%u+%u], t; ", p, 8 * form->bytes, part, 8 * e,
                p, space, bits, a, at + e);
}

static void put_access(struct writer *w, const struct form *form, bool load, const char *space) {
    unsigned a = form->parts, p = form->parts + 1;
    put(w, "{ ");
    if (form->element < form->bytes) put(w, ".reg .b%u t; ", 8 * form->bytes);
    put_whole(w, form, load, space, 0, a, p);
    for (unsigned i = 0; i < form->parts; i++) put_elements(w, form, load, space, i, a, p);
    put(w, "}");
}

static void put_constraints(struct writer *w, const struct form *form, bool load, LLVMValueRef address) {
    bool shared = LLVMGetPointerAddressSpace(LLVMTypeOf(address)) == PTX_SHARED;
    for (unsigned i = 0; i < form->parts; i++) put(w, "%s%c,", load ? "=&" : "", form->constraint);
    put(w, "%c,b,~{memory}", shared ? 'r' : 'l');
}

/* ---- The instructions. */

static LLVMValueRef as_number(struct unit *unit, LLVMValueRef address) {
    bool shared = LLVMGetPointerAddressSpace(LLVMTypeOf(address)) == PTX_SHARED;
    return LLVMBuildPtrToInt(unit->builder, address, shared ? type_i32(unit) : type_i64(unit), "");
}

static LLVMTypeRef parts_type(const struct form *form) {
    return form->parts > 1 ? LLVMVectorType(form->part, form->parts) : form->part;
}

/* Two bytes in one register: LLVM would convert between a vector of them and an integer through memory. */
static LLVMValueRef split_pair(struct unit *unit, LLVMValueRef word, LLVMTypeRef type) {
    LLVMBuilderRef b = unit->builder;
    LLVMTypeRef byte = LLVMGetElementType(type);
    LLVMValueRef high = LLVMBuildLShr(b, word, LLVMConstInt(LLVMTypeOf(word), 8, false), "");
    LLVMValueRef pair = LLVMBuildInsertElement(b, LLVMGetPoison(type), LLVMBuildTrunc(b, word, byte, ""),
                                               constant_i32(unit, 0), "");
    return LLVMBuildInsertElement(b, pair, LLVMBuildTrunc(b, high, byte, ""), constant_i32(unit, 1), "");
}

static LLVMValueRef join_pair(struct unit *unit, LLVMValueRef pair, LLVMTypeRef word) {
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef bytes[2];
    for (uint32_t i = 0; i < 2; i++)
        bytes[i] = LLVMBuildZExt(b, LLVMBuildExtractElement(b, pair, constant_i32(unit, i), ""), word, "");
    return LLVMBuildOr(b, bytes[0], LLVMBuildShl(b, bytes[1], LLVMConstInt(word, 8, false), ""), "");
}

static LLVMTypeRef result_type(struct unit *unit, const struct form *form) {
    LLVMTypeRef members[MOST_PARTS];
    if (form->parts == 1) return form->part;
    for (unsigned i = 0; i < form->parts; i++) members[i] = form->part;
    return LLVMStructTypeInContext(unit->context, members, form->parts, false);
}

/* The value that the registers of a load contain. */
static LLVMValueRef loaded_value(struct unit *unit, const struct form *form, LLVMValueRef call,
                                 LLVMTypeRef type) {
    LLVMBuilderRef b = unit->builder;
    if (LLVMTypeOf(call) == type) return call;
    if (form->bytes == 2 && form->element == 1) return split_pair(unit, call, type);
    if (form->parts == 1) return LLVMBuildBitCast(b, call, type, "");
    LLVMValueRef vector = LLVMGetPoison(parts_type(form));
    for (unsigned i = 0; i < form->parts; i++)
        vector = LLVMBuildInsertElement(b, vector, LLVMBuildExtractValue(b, call, i, ""),
                                        constant_i32(unit, i), "");
    return LLVMBuildBitCast(b, vector, type, "");
}

LLVMValueRef wide_load(struct unit *unit, LLVMTypeRef type, LLVMValueRef address, LLVMValueRef aligned) {
    struct form form = form_of(unit, type);
    struct writer text = {.length = 0}, constraints = {.length = 0};
    put_access(&text, &form, true, space_of(address));
    put_constraints(&constraints, &form, true, address);
    LLVMValueRef arguments[2] = {as_number(unit, address), aligned};
    LLVMValueRef call =
        build_assembly(unit, text.text, constraints.text, result_type(unit, &form), arguments, 2, true);
    return loaded_value(unit, &form, call, type);
}

void wide_store(struct unit *unit, LLVMValueRef vector, LLVMValueRef address, LLVMValueRef aligned) {
    LLVMBuilderRef b = unit->builder;
    struct form form = form_of(unit, LLVMTypeOf(vector));
    struct writer text = {.length = 0}, constraints = {.length = 0};
    LLVMValueRef arguments[MOST_PARTS + 2];
    LLVMValueRef parts = form.bytes == 2 ? join_pair(unit, vector, form.part)
                                         : LLVMBuildBitCast(b, vector, parts_type(&form), "");
    for (unsigned i = 0; i < form.parts; i++)
        arguments[i] = form.parts > 1 ? LLVMBuildExtractElement(b, parts, constant_i32(unit, i), "") : parts;
    arguments[form.parts] = as_number(unit, address);
    arguments[form.parts + 1] = aligned;
    put_access(&text, &form, false, space_of(address));
    put_constraints(&constraints, &form, false, address);
    (void)build_assembly(unit, text.text, constraints.text, NULL, arguments, form.parts + 2, true);
}

/* ---- Loads under a condition. */

static bool is_number(LLVMTypeRef type) {
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    unsigned width = kind == LLVMIntegerTypeKind ? LLVMGetIntTypeWidth(type) : 0;
    return width == 16 || width == 32 || width == 64 || kind == LLVMHalfTypeKind ||
           kind == LLVMBFloatTypeKind || kind == LLVMFloatTypeKind || kind == LLVMDoubleTypeKind;
}

bool wide_load_if_exists(struct unit *unit, LLVMValueRef load) {
    LLVMTypeRef type = LLVMTypeOf(load);
    bool vector = LLVMGetTypeKind(type) == LLVMVectorTypeKind;
    return LLVMGetAlignment(load) >= LLVMABISizeOfType(unit->layout, type) &&
           (vector ? wide_access_exists(unit, type) : is_number(type));
}

LLVMValueRef wide_load_if(struct unit *unit, LLVMValueRef load, LLVMValueRef condition) {
    LLVMTypeRef type = LLVMTypeOf(load);
    LLVMValueRef address = LLVMGetOperand(load, 0);
    struct form form = form_of(unit, type);
    struct writer text = {.length = 0}, constraints = {.length = 0};
    put_whole(&text, &form, true, space_of(address), 0, form.parts, form.parts + 1);
    put_constraints(&constraints, &form, true, address);
    LLVMValueRef arguments[2] = {as_number(unit, address), condition};
    LLVMValueRef call =
        build_assembly(unit, text.text, constraints.text, result_type(unit, &form), arguments, 2, true);
    return loaded_value(unit, &form, call, type);
}

/* How many registers a call loads that wide_load built for device memory; 0: it is another instruction. */
static unsigned parts_of_call(LLVMValueRef call) {
    LLVMValueRef code = LLVMIsACallInst(call) ? LLVMGetCalledValue(call) : NULL;
    size_t length = 0, more = 0;
    if (!code || !LLVMIsAInlineAsm(code)) return 0;
    const char *text = LLVMGetInlineAsmAsmString(code, &length);
    const char *constraints = LLVMGetInlineAsmConstraintString(code, &more);
    if (length < 2 || strncmp(text, "{ ", 2) != 0 || !strstr(text, " ld.global") || strstr(text, " st"))
        return 0;
    unsigned parts = 0;
    for (; more > 2 && strncmp(constraints, "=&", 2) == 0; parts++, constraints += 4, more -= 4) {
    }
    return strcmp(constraints, "l,b,~{memory}") == 0 ? parts : 0;
}

bool wide_is_load(LLVMValueRef call) {
    return parts_of_call(call) != 0;
}

LLVMValueRef wide_load_also_if(struct unit *unit, LLVMValueRef call, LLVMValueRef condition) {
    unsigned parts = parts_of_call(call);
    size_t length = 0, more = 0;
    LLVMValueRef code = LLVMGetCalledValue(call);
    const char *text = LLVMGetInlineAsmAsmString(code, &length);
    const char *constraints = LLVMGetInlineAsmConstraintString(code, &more);
    char yes[8], no[8];
    int yes_length = snprintf(yes, sizeof yes, "@$%u ", parts + 1),
        no_length = snprintf(no, sizeof no, "@!$%u ", parts + 1);
    struct writer now = {.length = 0}, joined = {.length = 0};
    put(&now,
        "{ .reg .pred whole, single; and.pred whole, $%u, $%u; not.pred single, $%u; and.pred single, "
        "single, $%u; ",
        parts + 1, parts + 2, parts + 1, parts + 2);
    for (const char *at = text + 2; *at;) {
        bool is_yes = strncmp(at, yes, (size_t)yes_length) == 0,
             is_no = strncmp(at, no, (size_t)no_length) == 0;
        if (is_yes || is_no) {
            put(&now, "%s", is_yes ? "@whole " : "@single ");
            at += is_yes ? yes_length : no_length;
        } else {
            put(&now, "%c", *at++);
        }
    }
    put(&joined, "%.*s,b,~{memory}", (int)(more - strlen(",~{memory}")), constraints);
    LLVMValueRef arguments[3] = {LLVMGetOperand(call, 0), LLVMGetOperand(call, 1), condition};
    return build_assembly(unit, now.text, joined.text, LLVMTypeOf(call), arguments, 3, true);
}

bool ptx_is_load(LLVMValueRef i) {
    if (LLVMIsALoadInst(i)) return LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(i, 0))) == PTX_GLOBAL;
    const char *text = ptx_assembly_text(i);
    return text && strstr(text, "ld.global") && !strstr(text, "st.");
}
