/* The debug location of every instruction becomes a line of the user's source: of the calls that were
 * inlined, the innermost one outside the prelude. Faults and messages then name lines that the user wrote. */
#include "compiler/pass.h"

#include <llvm-c/DebugInfo.h>

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

smelt_status pass_lines(struct unit *unit) {
    LLVMMetadataRef subprogram = LLVMGetSubprogram(unit->entry);
    if (!subprogram) return SMELT_OK;
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(instruction, block) {
        LLVMMetadataRef found = lines_of_user(instruction);
        if (!found) continue;
        LLVMMetadataRef file = LLVMDIScopeGetFile(LLVMDILocationGetScope(found));
        /* A block of that file under the entry's subprogram keeps the file name without inlining. */
        LLVMDIBuilderRef builder = LLVMCreateDIBuilder(unit->module);
        LLVMMetadataRef scope =
            file ? LLVMDIBuilderCreateLexicalBlockFile(builder, subprogram, file, 0) : subprogram;
        LLVMDisposeDIBuilder(builder);
        LLVMMetadataRef own = LLVMDIBuilderCreateDebugLocation(unit->context, LLVMDILocationGetLine(found),
                                                               LLVMDILocationGetColumn(found), scope, NULL);
        LLVMInstructionSetDebugLoc(instruction, own);
    }
    return SMELT_OK;
}
