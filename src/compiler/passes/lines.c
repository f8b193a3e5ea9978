/* The debug location of every instruction becomes a line of the user's source: of the calls that were
 * inlined, the innermost one outside the prelude. Faults and messages then name lines that the user wrote.
 *
 * LLVM drops the location of an instruction that it moves out of a loop, but keeps annotations. Messages are
 * about accesses, so each access has its location as an annotation while LLVM optimises. */
#include "compiler/pass.h"

#include <llvm-c/DebugInfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_of_prelude(LLVMMetadataRef file) {
    if (!file) return true;
    unsigned length;
    const char *name = LLVMDIFileGetFilename(file, &length);
    /* Names of the prelude and of generated text are in angle brackets; with a precompiled prelude, clang's
     * working directory precedes them. */
    if (length == 0 || name[length - 1] != '>') return length == 0;
    unsigned base = length; /* names in the brackets may have folders */
    while (base > 0 && name[base - 1] != '<') base--;
    return base == 1 || (base > 1 && name[base - 2] == '/');
}

static bool is_prelude(LLVMMetadataRef location) {
    return is_of_prelude(LLVMDIScopeGetFile(LLVMDILocationGetScope(location)));
}

bool lines_are_of_user(LLVMValueRef instruction) {
    LLVMMetadataRef location = LLVMInstructionGetDebugLoc(instruction);
    return location && !is_prelude(location);
}

bool lines_of_function_are_of_user(LLVMValueRef function) {
    LLVMMetadataRef subprogram = LLVMGetSubprogram(function);
    return subprogram && !is_of_prelude(LLVMDIScopeGetFile(subprogram));
}

LLVMMetadataRef lines_of_user(LLVMValueRef instruction) {
    LLVMMetadataRef location = LLVMInstructionGetDebugLoc(instruction), found = location;
    while (found && is_prelude(found)) found = LLVMDILocationGetInlinedAt(found);
    return found ? found : location;
}

/* ---- Annotations of accesses: "LINE:COLUMN:FILE". */

static unsigned note_kind(struct unit *unit) {
    return LLVMGetMDKindIDInContext(unit->context, "annotation", 10);
}

static bool is_access(LLVMValueRef instruction) {
    return LLVMIsALoadInst(instruction) || LLVMIsAStoreInst(instruction) ||
           LLVMIsAAtomicRMWInst(instruction) || LLVMIsAAtomicCmpXchgInst(instruction) ||
           LLVMIsAMemIntrinsic(instruction);
}

enum { MOST_NOTE = 4200 };

static void note(struct unit *unit, LLVMValueRef access, LLVMMetadataRef location) {
    char text[MOST_NOTE];
    unsigned length = 0;
    LLVMMetadataRef file = LLVMDIScopeGetFile(LLVMDILocationGetScope(location));
    const char *name = file ? LLVMDIFileGetFilename(file, &length) : "";
    int written = snprintf(text, sizeof text, "%u:%u:%.*s", LLVMDILocationGetLine(location),
                           LLVMDILocationGetColumn(location), (int)length, name);
    if (written >= MOST_NOTE) return;
    LLVMMetadataRef string = LLVMMDStringInContext2(unit->context, text, (size_t)written);
    LLVMSetMetadata(access, note_kind(unit),
                    LLVMMetadataAsValue(unit->context, LLVMMDNodeInContext2(unit->context, &string, 1)));
}

smelt_status pass_lines_noted(struct unit *unit) {
    if (!LLVMGetSubprogram(unit->entry)) return SMELT_OK;
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(instruction, block) {
        LLVMMetadataRef location = is_access(instruction) ? lines_of_user(instruction) : NULL;
        if (location && LLVMDILocationGetLine(location)) note(unit, instruction, location);
    }
    return SMELT_OK;
}

/* A place in the user's source; line 0: it is not known. */
struct source_place {
    unsigned line, column;
    LLVMMetadataRef file; /* NULL: not known */
};

static struct source_place noted(struct unit *unit, LLVMDIBuilderRef builder, LLVMValueRef instruction) {
    struct source_place place = {0, 0, NULL};
    LLVMValueRef string, node = LLVMGetMetadata(instruction, note_kind(unit));
    unsigned length = 0;
    if (!node || LLVMGetMDNodeNumOperands(node) != 1) return place;
    LLVMGetMDNodeOperands(node, &string);
    const char *text = string ? LLVMGetMDString(string, &length) : NULL;
    const char *column = text ? memchr(text, ':', length) : NULL;
    const char *file = column ? memchr(column + 1, ':', (size_t)(text + length - column - 1)) : NULL;
    if (!file) return place;
    place.line = (unsigned)strtoul(text, NULL, 10);
    place.column = (unsigned)strtoul(column + 1, NULL, 10);
    place.file = LLVMDIBuilderCreateFile(builder, file + 1, (size_t)(text + length - file - 1), "", 0);
    return place;
}

/* ---- Every instruction's location. */

static struct source_place place_of(LLVMValueRef instruction) {
    LLVMMetadataRef found = lines_of_user(instruction);
    if (!found) return (struct source_place){0, 0, NULL};
    return (struct source_place){LLVMDILocationGetLine(found), LLVMDILocationGetColumn(found),
                                 LLVMDIScopeGetFile(LLVMDILocationGetScope(found))};
}

static LLVMValueRef instruction_before(LLVMValueRef instruction) {
    LLVMValueRef before = LLVMGetPreviousInstruction(instruction);
    LLVMBasicBlockRef block = LLVMGetInstructionParent(instruction);
    if (before || block == LLVMGetEntryBasicBlock(LLVMGetBasicBlockParent(block))) return before;
    return LLVMGetBasicBlockTerminator(LLVMGetPreviousBasicBlock(block));
}

/* For an access that LLVM has merged from two branches: the location of an instruction before it, such as
 * that of the `if`. */
static struct source_place place_before(LLVMValueRef access) {
    struct source_place place = {0, 0, NULL};
    for (LLVMValueRef i = access; i && !place.line; i = instruction_before(i)) place = place_of(i);
    return place;
}

static void set_place(struct unit *unit, LLVMDIBuilderRef builder, LLVMValueRef instruction) {
    struct source_place place = place_of(instruction);
    if (is_access(instruction)) {
        if (!place.line) place = noted(unit, builder, instruction);
        if (!place.line) place = place_before(instruction);
        LLVMSetMetadata(instruction, note_kind(unit), NULL);
    }
    if (!place.file && !place.line) return;
    LLVMMetadataRef subprogram = LLVMGetSubprogram(unit->entry);
    /* A block of that file under the entry's subprogram keeps the file name without inlining. */
    LLVMMetadataRef scope =
        place.file ? LLVMDIBuilderCreateLexicalBlockFile(builder, subprogram, place.file, 0) : subprogram;
    LLVMInstructionSetDebugLoc(
        instruction, LLVMDIBuilderCreateDebugLocation(unit->context, place.line, place.column, scope, NULL));
}

smelt_status pass_lines(struct unit *unit) {
    if (!LLVMGetSubprogram(unit->entry)) return SMELT_OK;
    LLVMDIBuilderRef builder = LLVMCreateDIBuilder(unit->module);
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(instruction, block) set_place(unit, builder, instruction);
    LLVMDisposeDIBuilder(builder);
    return SMELT_OK;
}
