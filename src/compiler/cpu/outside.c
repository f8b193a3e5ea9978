/* Every symbol that an object refers to and does not define must be in the runtime's list, so that code that
 * compiles can be loaded, here and from a package elsewhere.
 *
 * Requires: result->image.object, as LLVM wrote it. Maintains: everything. */
#include "abi/runtime_names.h"
#include "compiler/pass.h"

#include <elf.h>
#include <string.h>

static bool is_in_runtime(const char *name) {
    static const char *const names[] = {RUNTIME_FUNCTIONS(RUNTIME_NAME)};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

/* The first name in a symbol table that cannot be resolved, or NULL. */
static const char *unknown_symbol(const char *file, const Elf64_Shdr *sections, const Elf64_Shdr *table) {
    const Elf64_Sym *symbols = (const Elf64_Sym *)(file + table->sh_offset);
    const char *names = file + sections[table->sh_link].sh_offset;
    for (size_t i = 1; i < table->sh_size / sizeof *symbols; i++) {
        const char *name = names + symbols[i].st_name;
        if (symbols[i].st_shndx == SHN_UNDEF && !is_in_runtime(name)) return name;
    }
    return NULL;
}

smelt_status outside_check(struct unit *unit) {
    const char *file = unit->result->image.object;
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)file;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(file + header->e_shoff);
    for (unsigned i = 0; i < header->e_shnum; i++) {
        const char *name =
            sections[i].sh_type == SHT_SYMTAB ? unknown_symbol(file, sections, &sections[i]) : NULL;
        if (!name) continue;
        /* The scalar engine's code may not need it. */
        unit->refused = unit->target->may_refuse;
        return unit_fail(unit, SMELT_ERROR_UNSUPPORTED, "generated code needs '%s', which the runtime lacks",
                         name);
    }
    return SMELT_OK;
}
