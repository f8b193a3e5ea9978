/* Refusals and remarks, each with the user's line. */
#include "compiler/simd/simd.h"

#include <llvm-c/DebugInfo.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool is_generated(LLVMMetadataRef location) {
    unsigned length;
    LLVMMetadataRef file = LLVMDIScopeGetFile(LLVMDILocationGetScope(location));
    const char *name = file ? LLVMDIFileGetFilename(file, &length) : NULL;
    return name && strchr(name, '<');
}

static void place_of(LLVMValueRef instruction, struct remark *remark) {
    LLVMMetadataRef location = instruction ? LLVMInstructionGetDebugLoc(instruction) : NULL;
    unsigned length;
    if (!location) return;
    /* Places in the prelude and in generated text mean nothing to the author. */
    if (is_generated(location)) return;
    LLVMMetadataRef file = LLVMDIScopeGetFile(LLVMDILocationGetScope(location));
    remark->file = file ? LLVMDIFileGetFilename(file, &length) : NULL;
    remark->line = LLVMDILocationGetLine(location);
    remark->column = LLVMDILocationGetColumn(location);
}

void simd_refuse(struct simd *s, LLVMValueRef instruction, const char *format, ...) {
    char text[700];
    struct remark place = {0};
    va_list arguments;
    if (s->refused) return;
    s->refused = true;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    place_of(instruction, &place);
    if (place.file && place.line)
        (void)unit_fail(s->unit, SMELT_ERROR_UNSUPPORTED, "%s:%u: %s", place.file, place.line, text);
    else
        (void)unit_fail(s->unit, SMELT_ERROR_UNSUPPORTED, "%s", text);
}

static bool same_remark(const struct remark *a, const struct remark *b) {
    bool same_file = a->file && b->file ? strcmp(a->file, b->file) == 0 : a->file == b->file;
    return same_file && a->line == b->line && strcmp(a->text, b->text) == 0;
}

/* In the order of the user's lines, without repetition. */
void simd_remark(struct simd *s, LLVMValueRef instruction, const char *format, ...) {
    va_list arguments;
    char text[500];
    if (s->unit->request->output != COMPILE_WHY) return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    struct remark *one = arena_alloc(&s->arena, sizeof *one);
    if (!one) return;
    *one = (struct remark){.text = arena_copy(&s->arena, text, strlen(text))};
    place_of(instruction, one);
    if (one->file) one->file = arena_copy(&s->arena, one->file, strlen(one->file));
    struct remark **at = &s->remarks;
    while (*at && ((*at)->line < one->line || ((*at)->line == one->line && (*at)->column <= one->column))) {
        if (same_remark(*at, one)) return;
        at = &(*at)->next;
    }
    one->next = *at;
    *at = one;
}

unsigned remark_line(LLVMValueRef instruction) {
    struct remark place = {0};
    place_of(instruction, &place);
    return place.line;
}
