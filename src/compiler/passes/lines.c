/* Every instruction's debug location becomes a line of the user's: of the calls that were inlined on the way,
 * the innermost one that stands outside the prelude. So faults and messages name lines the user wrote. */
#include "compiler/pass.h"

#include <llvm-c/DebugInfo.h>

static bool is_prelude(LLVMMetadataRef location) {
    LLVMMetadataRef file = LLVMDIScopeGetFile(LLVMDILocationGetScope(location));
    if (!file) return true;
    unsigned length;
    const char *name = LLVMDIFileGetFilename(file, &length);
    /* The prelude's own places, and generated text, have names in angle brackets; out of a precompiled
     * prelude they come with clang's working directory before them. */
    unsigned base = length;
    while (base > 0 && name[base - 1] != '/') base--;
    return length == 0 || (base < length && name[base] == '<' && name[length - 1] == '>');
}

smelt_status pass_lines(struct unit *unit) {
    LLVMMetadataRef subprogram = LLVMGetSubprogram(unit->entry);
    if (!subprogram) return SMELT_OK;
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(instruction, block) {
        LLVMMetadataRef location = LLVMInstructionGetDebugLoc(instruction);
        if (!location) continue;
        LLVMMetadataRef found = location;
        while (found && is_prelude(found)) found = LLVMDILocationGetInlinedAt(found);
        if (!found) found = location;
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
