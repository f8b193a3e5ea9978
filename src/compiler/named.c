/* Names for messages: the user's place of an instruction, the names of functions and variables. */
#include "compiler/float_function.h"
#include "compiler/pass.h"

#include <ctype.h>
#include <llvm-c/DebugInfo.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *file_of(LLVMMetadataRef location) {
    unsigned length;
    LLVMMetadataRef file = LLVMDIScopeGetFile(LLVMDILocationGetScope(location));
    return file ? LLVMDIFileGetFilename(file, &length) : NULL;
}

/* With the user's line of the instruction in front. */
smelt_status unit_fail_at(struct unit *unit, LLVMValueRef instruction, const char *format, ...) {
    char text[700];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    LLVMMetadataRef location = LLVMInstructionGetDebugLoc(instruction);
    /* Files of the prelude have < > around their names. */
    while (location && (!file_of(location) || strchr(file_of(location), '<')))
        location = LLVMDILocationGetInlinedAt(location);
    if (!location || !file_of(location)) return unit_fail(unit, SMELT_ERROR_UNSUPPORTED, "%s", text);
    return unit_fail(unit, SMELT_ERROR_UNSUPPORTED, "%s:%u: %s", file_of(location),
                     LLVMDILocationGetLine(location), text);
}

#define SUBPROGRAM_NAME 2 /* the operand of a DISubprogram */

/* The name in the source; false if there is no debug information. */
static bool name_in_source(struct unit *unit, LLVMValueRef function, char name[200]) {
    LLVMMetadataRef subprogram = LLVMIsAFunction(function) ? LLVMGetSubprogram(function) : NULL;
    LLVMValueRef operands[16] = {0}, node;
    unsigned length;
    if (!subprogram) return false;
    node = LLVMMetadataAsValue(unit->context, subprogram);
    if (LLVMGetMDNodeNumOperands(node) > 16) return false;
    LLVMGetMDNodeOperands(node, operands);
    const char *text = operands[SUBPROGRAM_NAME] ? LLVMGetMDString(operands[SUBPROGRAM_NAME], &length) : NULL;
    if (text) snprintf(name, 200, "%.*s", (int)length, text);
    return text != NULL;
}

static void name_in_symbol(LLVMValueRef value, char name[200]) {
    size_t length;
    const char *symbol = LLVMGetValueName2(value, &length);
    snprintf(name, 200, "%s", symbol);
    /* The initial contents of a function's constant array: __const.FUNCTION.VARIABLE. */
    const char *array = strncmp(symbol, "__const.", 8) == 0 ? strchr(symbol + 8, '.') : NULL;
    if (array) snprintf(name, 200, "%.*s", (int)strcspn(array + 1, "."), array + 1);
    if (strncmp(symbol, "_Z", 2) != 0) return;
    /* For a variable in a function, the part after the function's name and arguments. */
    const char *start = symbol + 2;
    for (const char *at = strchr(symbol, 'E'); strstr(symbol, "ZZ") && at; at = strchr(at + 1, 'E'))
        if (isdigit((unsigned char)at[1])) start = at + 1;
    for (const char *at = start; *at;) {
        if (!isdigit((unsigned char)*at)) {
            at++;
            continue;
        }
        char *text;
        unsigned long count = strtoul(at, &text, 10);
        if (!count || count > strlen(text)) break;
        if (strncmp(text, "_GLOBAL__N_", 11) != 0) snprintf(name, 200, "%.*s", (int)count, text);
        at = text + count;
        /* A function outside any namespace: its arguments follow. */
        if (start == symbol + 2 && (*start == 'L' || isdigit((unsigned char)*start))) break;
        /* A function's arguments or template arguments follow. */
        if (*at && !isdigit((unsigned char)*at) && *at != 'E') break;
        if (*at == 'E' && !isdigit((unsigned char)at[1])) break;
        if (*at == 'E') at++;
    }
}

/* Functions of the prelude have no debug information. */
void unit_plain_name(struct unit *unit, LLVMValueRef value, char name[200]) {
    static const size_t mark = sizeof REGCALL_MARK - 1;
    if (name_in_source(unit, value, name)) return;
    name_in_symbol(value, name);
    if (strncmp(name, REGCALL_MARK, mark) == 0) memmove(name, name + mark, strlen(name + mark) + 1);
}

/* ---- Private variables, whose names are those of values. */

#define PRIVATE_NAME "smelt.name"

static unsigned private_name_kind(struct unit *unit) {
    return LLVMGetMDKindIDInContext(unit->context, PRIVATE_NAME, sizeof PRIVATE_NAME - 1);
}

/* Arrays, and objects that may contain one. */
static bool is_aggregate(LLVMValueRef variable) {
    LLVMTypeKind kind = LLVMGetTypeKind(LLVMGetAllocatedType(variable));
    return kind == LLVMArrayTypeKind || kind == LLVMStructTypeKind;
}

void unit_variable_name(LLVMValueRef variable, char name[200]) {
    size_t length;
    const char *own = LLVMGetValueName2(variable, &length);
    if (strstr(own, ".tmp")) /* clang's ref.tmp, agg.tmp, … */
        snprintf(name, 200, "temporary");
    else
        snprintf(name, 200, "%.*s", (int)strcspn(own, "."), own); /* x.addr, x.i */
}

static void keep_name(struct unit *unit, LLVMValueRef variable) {
    char name[200];
    unit_variable_name(variable, name);
    if (!*name) return;
    LLVMMetadataRef text = LLVMMDStringInContext2(unit->context, name, strlen(name));
    LLVMMetadataRef node = LLVMMDNodeInContext2(unit->context, &text, 1);
    LLVMSetMetadata(variable, private_name_kind(unit), LLVMMetadataAsValue(unit->context, node));
}

void unit_keep_private_names(struct unit *unit) {
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f)) {
        FOR_EACH_BLOCK(block, f) {
            FOR_EACH_INSTRUCTION(i, block) {
                if (LLVMIsAAllocaInst(i) && is_aggregate(i)) keep_name(unit, i);
            }
        }
    }
}

void unit_drop_names(struct unit *unit) {
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f)) {
        for (LLVMValueRef p = LLVMGetFirstParam(f); p; p = LLVMGetNextParam(p)) LLVMSetValueName2(p, "", 0);
        FOR_EACH_BLOCK(block, f) {
            LLVMSetValueName2(LLVMBasicBlockAsValue(block), "", 0);
            FOR_EACH_INSTRUCTION(i, block) {
                if (LLVMGetTypeKind(LLVMTypeOf(i)) != LLVMVoidTypeKind) LLVMSetValueName2(i, "", 0);
            }
        }
    }
}

bool unit_private_name(struct unit *unit, LLVMValueRef variable, char name[200]) {
    LLVMValueRef node = LLVMGetMetadata(variable, private_name_kind(unit)), text;
    unsigned length;
    if (!node) return false;
    LLVMGetMDNodeOperands(node, &text);
    const char *own = LLVMGetMDString(text, &length);
    snprintf(name, 200, "%.*s", (int)length, own);
    return true;
}

bool unit_calls_itself(struct unit *unit, LLVMValueRef call, char name[200]) {
    LLVMValueRef callee = LLVMIsACallInst(call) ? LLVMGetCalledValue(call) : NULL;
    if (!callee || !LLVMIsAFunction(callee) || LLVMIsDeclaration(callee)) return false;
    unit_plain_name(unit, callee, name);
    return true;
}
