#include "device/cpu/object.h"
#include "device/cpu/arch/arch.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct loader {
    const char *file;
    size_t size;
    const Elf64_Ehdr *header;
    const Elf64_Shdr *sections;
    const Elf64_Sym *symbols;
    size_t symbol_count;
    const char *names; /* of symbols */
    size_t names_size;
    size_t *offset; /* of each section in memory; SIZE_MAX: not placed */
    char *memory;
    size_t stubs; /* offset of the stubs; one per symbol, the GOT entry in its second half */
};

static smelt_status bad(const char *what) {
    return fail(SMELT_ERROR_FORMAT, "object file: %s", what);
}

static bool inside(const struct loader *l, uint64_t offset, uint64_t size) {
    return offset <= l->size && size <= l->size - offset;
}

static const char *section_name(const struct loader *l, unsigned index) {
    const Elf64_Shdr *names = &l->sections[l->header->e_shstrndx];
    uint32_t at = l->sections[index].sh_name;
    return at < names->sh_size ? l->file + names->sh_offset + at : "";
}

/* Ignores sections without bytes in the file. */
static bool lies_inside(const struct loader *l, const Elf64_Shdr *s) {
    return s->sh_type == SHT_NOBITS || s->sh_type == SHT_NULL || inside(l, s->sh_offset, s->sh_size);
}

/* A table of names ends with a zero, so that each name does. */
static bool are_names(const struct loader *l, unsigned index) {
    const Elf64_Shdr *s = &l->sections[index];
    return s->sh_type == SHT_STRTAB && s->sh_size && !l->file[s->sh_offset + s->sh_size - 1];
}

static smelt_status read_headers(struct loader *l) {
    if (l->size < sizeof *l->header || memcmp(l->file, ELFMAG, SELFMAG) != 0) return bad("not an ELF file");
    l->header = (const Elf64_Ehdr *)l->file;
    if (l->header->e_ident[EI_CLASS] != ELFCLASS64 || l->header->e_type != ET_REL ||
        l->header->e_machine != arch_elf_machine)
        return fail(SMELT_ERROR_FORMAT, "object file: not a relocatable %s file", arch_name);
    if (l->header->e_shentsize != sizeof(Elf64_Shdr) || l->header->e_shstrndx >= l->header->e_shnum ||
        !inside(l, l->header->e_shoff, (uint64_t)l->header->e_shnum * sizeof(Elf64_Shdr)) ||
        l->header->e_shoff % 8)
        return bad("damaged section headers");
    l->sections = (const Elf64_Shdr *)(l->file + l->header->e_shoff);
    for (unsigned i = 0; i < l->header->e_shnum; i++)
        if (!lies_inside(l, &l->sections[i])) return bad("a section lies outside the file");
    if (!are_names(l, l->header->e_shstrndx)) return bad("damaged section names");
    for (unsigned i = 0; i < l->header->e_shnum; i++) {
        const Elf64_Shdr *s = &l->sections[i];
        if (s->sh_type != SHT_SYMTAB) continue;
        if (s->sh_link >= l->header->e_shnum || s->sh_offset % 8) return bad("damaged symbol table");
        l->symbols = (const Elf64_Sym *)(l->file + s->sh_offset);
        l->symbol_count = s->sh_size / sizeof *l->symbols;
        l->names = l->file + l->sections[s->sh_link].sh_offset;
        l->names_size = l->sections[s->sh_link].sh_size;
        if (!are_names(l, s->sh_link)) return bad("damaged symbol names");
    }
    return SMELT_OK;
}

static const char *symbol_name(const struct loader *l, const Elf64_Sym *symbol) {
    return symbol->st_name < l->names_size ? l->names + symbol->st_name : "";
}

static size_t page_bytes(void) {
    return (size_t)sysconf(_SC_PAGESIZE);
}
static size_t round_up(size_t value, size_t to) {
    return (value + to - 1) / to * to;
}

static bool is_line_section(const struct loader *l, unsigned index) {
    const char *name = section_name(l, index);
    return strcmp(name, ".debug_line") == 0 || strcmp(name, ".debug_line_str") == 0;
}

/* Code first, from the stubs on, in pages of its own; data and the line table behind. */
static smelt_status place(struct loader *l, struct object *object) {
    size_t at = 0;
    for (int code = 1; code >= 0; code--) {
        if (code) {
            l->stubs = 0;
            at = round_up(l->symbol_count * ARCH_STUB_BYTES, 64);
        }
        for (unsigned i = 0; i < l->header->e_shnum; i++) {
            const Elf64_Shdr *s = &l->sections[i];
            bool executable = (s->sh_flags & SHF_EXECINSTR) != 0;
            bool wanted = (s->sh_flags & SHF_ALLOC) != 0 || is_line_section(l, i);
            if (!wanted || executable != (code == 1)) continue;
            size_t align = s->sh_addralign > 1 ? s->sh_addralign : 1;
            if (align > 4096 || s->sh_size > (size_t)1 << 30) return bad("a section of impossible size");
            at = round_up(at, align);
            l->offset[i] = at;
            at += s->sh_size;
        }
        if (code) {
            object->code_size = at;
            at = round_up(at + 1, page_bytes());
        }
    }
    object->mapped = round_up(at + 1, page_bytes());
    object->memory = mmap(NULL, object->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (object->memory == MAP_FAILED) {
        object->memory = NULL;
        return fail_out_of_memory(object->mapped);
    }
    l->memory = object->memory;
    object->code = object->memory;
    for (unsigned i = 0; i < l->header->e_shnum; i++) {
        const Elf64_Shdr *s = &l->sections[i];
        if (l->offset[i] == SIZE_MAX || s->sh_type == SHT_NOBITS) continue;
        memcpy(l->memory + l->offset[i], l->file + s->sh_offset, s->sh_size);
        if (strcmp(section_name(l, i), ".debug_line") == 0) {
            object->line_program = l->memory + l->offset[i];
            object->line_program_size = s->sh_size;
        }
    }
    return SMELT_OK;
}

static const void *runtime_address(const char *name) {
    for (const struct runtime_symbol *s = runtime_symbols; s->name; s++)
        if (strcmp(s->name, name) == 0) return s->address;
    return NULL;
}

static smelt_status symbol_address(struct loader *l, size_t index, const char **address, bool *outside) {
    if (index >= l->symbol_count) return bad("a relocation names no symbol");
    const Elf64_Sym *symbol = &l->symbols[index];
    *outside = symbol->st_shndx == SHN_UNDEF;
    if (*outside) {
        const void *found = runtime_address(symbol_name(l, symbol));
        if (!found)
            return fail(SMELT_ERROR_UNSUPPORTED, "generated code calls '%s', which the runtime does not have",
                        symbol_name(l, symbol));
        *address = found;
    } else if (symbol->st_shndx < l->header->e_shnum && l->offset[symbol->st_shndx] != SIZE_MAX) {
        *address = l->memory + l->offset[symbol->st_shndx] + symbol->st_value;
    } else if (symbol->st_shndx == SHN_ABS) {
        *address = (const char *)symbol->st_value;
    } else {
        return bad("a symbol lies in a section that is not loaded");
    }
    arch_write_stub(l->memory + l->stubs + index * ARCH_STUB_BYTES, *address);
    return SMELT_OK;
}

static smelt_status relocate_one(struct loader *l, const Elf64_Rela *r, unsigned target) {
    const Elf64_Shdr *section = &l->sections[target];
    uint64_t at = r->r_offset < section->sh_size ? r->r_offset : section->sh_size;
    struct arch_relocation relocation = {
        .type = ELF64_R_TYPE(r->r_info),
        .addend = r->r_addend,
        .stub = l->memory + l->stubs + ELF64_R_SYM(r->r_info) * ARCH_STUB_BYTES,
        .debug = !(section->sh_flags & SHF_ALLOC),
        .place = l->memory + l->offset[target] + at,
        .room = section->sh_size - at,
    };
    TRY(symbol_address(l, ELF64_R_SYM(r->r_info), &relocation.symbol, &relocation.outside));
    return arch_relocate(&relocation);
}

static smelt_status relocate(struct loader *l) {
    for (unsigned i = 0; i < l->header->e_shnum; i++) {
        const Elf64_Shdr *s = &l->sections[i];
        if (s->sh_type != SHT_RELA || s->sh_info >= l->header->e_shnum || l->offset[s->sh_info] == SIZE_MAX)
            continue;
        if (s->sh_offset % 8) return bad("damaged relocations");
        const Elf64_Rela *list = (const Elf64_Rela *)(l->file + s->sh_offset);
        for (size_t r = 0; r < s->sh_size / sizeof *list; r++) TRY(relocate_one(l, &list[r], s->sh_info));
    }
    return SMELT_OK;
}

/* NULL: the file defines no such function. */
static const void *find_function(const struct loader *l, const char *name) {
    for (size_t n = 0; n < l->symbol_count; n++) {
        unsigned index = l->symbols[n].st_shndx;
        if (strcmp(symbol_name(l, &l->symbols[n]), name) != 0 || index >= l->header->e_shnum) continue;
        const Elf64_Shdr *s = &l->sections[index];
        if (l->offset[index] != SIZE_MAX && s->sh_flags & SHF_EXECINSTR &&
            l->symbols[n].st_value < s->sh_size)
            return l->memory + l->offset[index] + l->symbols[n].st_value;
    }
    return NULL;
}

smelt_status object_load(const char *file, size_t size, const char *entry, const char *other,
                         struct object *object) {
    *object = (struct object){0};
    struct loader l = {.file = file, .size = size};
    TRY(read_headers(&l));
    l.offset = malloc(((size_t)l.header->e_shnum + 1) * sizeof *l.offset);
    if (!l.offset) return fail_out_of_memory(l.header->e_shnum * sizeof *l.offset);
    for (unsigned i = 0; i < l.header->e_shnum; i++) l.offset[i] = SIZE_MAX;
    smelt_status status = place(&l, object);
    if (status == SMELT_OK) status = relocate(&l);
    if (status == SMELT_OK &&
        mprotect(object->memory, round_up(object->code_size, page_bytes()), PROT_READ | PROT_EXEC) != 0)
        status = fail(SMELT_ERROR_IO, "memory for generated code cannot be made executable on this system");
    if (status == SMELT_OK) object->entry = find_function(&l, entry);
    if (status == SMELT_OK) object->other = find_function(&l, other);
    free(l.offset);
    if (status != SMELT_OK) object_unload(object);
    return status;
}

void object_unload(struct object *object) {
    if (object->memory) munmap(object->memory, object->mapped);
    *object = (struct object){0};
}
