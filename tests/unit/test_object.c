/* The loader of generated code: a small file that loads, and the messages for damaged ones. */
#include "device/cpu/object.h"
#include "unit.h"

#include <elf.h>
#include <string.h>

enum { TEXT = 1, SYMBOLS, NAMES, RELOCATIONS, SECTION_NAMES, SECTIONS };

/* A function that calls itself by a relocation. */
struct file {
    Elf64_Ehdr header;
    Elf64_Shdr sections[SECTIONS];
    Elf64_Sym symbols[2];
    Elf64_Rela relocation;
    char names[16], code[16], section_names[8];
};

#define SECTION(member, kind)                                      \
    .sh_type = (kind), .sh_offset = offsetof(struct file, member), \
    .sh_size = sizeof(((struct file *)0)->member)

static const struct file good = {
    .header = {.e_ident = ELFMAG "\x02\x01\x01",
               .e_type = ET_REL,
               .e_machine = EM_X86_64,
               .e_shoff = offsetof(struct file, sections),
               .e_shentsize = sizeof(Elf64_Shdr),
               .e_shnum = SECTIONS,
               .e_shstrndx = SECTION_NAMES},
    .sections = {[TEXT] = {SECTION(code, SHT_PROGBITS), .sh_flags = SHF_ALLOC | SHF_EXECINSTR},
                 [SYMBOLS] = {SECTION(symbols, SHT_SYMTAB), .sh_link = NAMES},
                 [NAMES] = {SECTION(names, SHT_STRTAB)},
                 [RELOCATIONS] = {SECTION(relocation, SHT_RELA), .sh_info = TEXT},
                 [SECTION_NAMES] = {SECTION(section_names, SHT_STRTAB)}},
    .symbols = {[1] = {.st_name = 1, .st_shndx = TEXT, .st_value = 2}},
    .relocation = {.r_offset = 8, .r_info = ELF64_R_INFO(1, R_X86_64_PC32), .r_addend = 5},
    .names = "\0function",
    .code = "\x90\x90\xc3",
};

static void expect_error(const struct file *file, size_t size, smelt_status status, const char *message) {
    struct object object;
    assert_int_equal(object_load((const char *)file, size, "function", "other", &object), status);
    assert_string_equal(smelt_error(), message);
    assert_null(object.memory);
}

static void a_good_file_loads(void **state) {
    (void)state;
    struct object object;
    assert_int_equal(object_load((const char *)&good, sizeof good, "function", "other", &object), SMELT_OK);
    assert_true(object.code_size >= sizeof good.code);
    const char *function = object.entry;
    assert_non_null(function);
    assert_memory_equal(function, good.code + 2, 1);
    int32_t distance;
    memcpy(&distance, function + 6, sizeof distance);
    assert_int_equal(distance, 5 - 6); /* from the place to the function, and the addend */
    struct source_line line;
    assert_false(object_line(&object, function, &line));
    object_unload(&object);
    assert_int_equal(object_load((const char *)&good, sizeof good, "functio", "other", &object), SMELT_OK);
    assert_null(object.entry);
    object_unload(&object);
}

static void refuse_sized(size_t size, const char *message) {
    expect_error(&good, size, SMELT_ERROR_FORMAT, message);
}

/* `change` damages the good file, which is then refused. */
#define REFUSE(change, message)                                        \
    do {                                                               \
        struct file file = good;                                       \
        file.change;                                                   \
        expect_error(&file, sizeof file, SMELT_ERROR_FORMAT, message); \
    } while (0)

static void damaged_headers_are_refused(void **state) {
    (void)state;
    refuse_sized(sizeof good.header - 1, "object file: not an ELF file");
    REFUSE(header.e_ident[1] = 'F', "object file: not an ELF file");
    REFUSE(header.e_ident[EI_CLASS] = ELFCLASS32, "object file: not a relocatable x86-64 file");
    REFUSE(header.e_type = ET_DYN, "object file: not a relocatable x86-64 file");
    REFUSE(header.e_machine = EM_AARCH64, "object file: not a relocatable x86-64 file");
    REFUSE(header.e_shentsize = 60, "object file: damaged section headers");
    REFUSE(header.e_shstrndx = SECTIONS, "object file: damaged section headers");
    REFUSE(header.e_shnum = 5000, "object file: damaged section headers");
    REFUSE(header.e_shoff = UINT64_MAX - 7, "object file: damaged section headers");
    REFUSE(header.e_shoff += 4, "object file: damaged section headers");
}

static void damaged_sections_are_refused(void **state) {
    (void)state;
    for (int i = TEXT; i < SECTIONS; i++) {
        REFUSE(sections[i].sh_offset = sizeof file, "object file: a section lies outside the file");
        REFUSE(sections[i].sh_size = sizeof file, "object file: a section lies outside the file");
        REFUSE(sections[i].sh_size = UINT64_MAX, "object file: a section lies outside the file");
    }
    refuse_sized(sizeof good - 1, "object file: a section lies outside the file");
    REFUSE(sections[SYMBOLS].sh_link = SECTIONS, "object file: damaged symbol table");
    REFUSE(sections[SYMBOLS].sh_offset += 4, "object file: damaged symbol table");
    REFUSE(sections[NAMES].sh_size = 0, "object file: damaged symbol names");
    REFUSE(names[15] = 'x', "object file: damaged symbol names");
    REFUSE(sections[NAMES].sh_type = SHT_NOBITS, "object file: damaged symbol names");
    REFUSE(section_names[7] = 'x', "object file: damaged section names");
    REFUSE(header.e_shstrndx = 0, "object file: damaged section names");
    REFUSE(sections[TEXT].sh_addralign = 8192, "object file: a section of impossible size");
    REFUSE(sections[RELOCATIONS].sh_offset -= 4, "object file: damaged relocations");
}

static void damaged_relocations_are_refused(void **state) {
    (void)state;
    REFUSE(relocation.r_info = ELF64_R_INFO(2, R_X86_64_PC32), "object file: a relocation names no symbol");
    REFUSE(relocation.r_offset = 13, "object file: a relocation lies outside its section");
    REFUSE(relocation.r_offset = UINT64_MAX - 1, "object file: a relocation lies outside its section");
    REFUSE(relocation.r_info = ELF64_R_INFO(1, R_X86_64_TLSGD),
           "object file: relocation type 19 is not known");
    REFUSE(relocation.r_info = ELF64_R_INFO(1, R_X86_64_32), "object file: a 32-bit absolute relocation");
    REFUSE(relocation.r_addend = INT64_C(1) << 32, "object file: a relocation is out of reach");
    REFUSE(symbols[1].st_shndx = SYMBOLS, "object file: a symbol lies in a section that is not loaded");
    struct file file = good;
    file.symbols[1].st_shndx = SHN_UNDEF;
    expect_error(&file, sizeof file, SMELT_ERROR_UNSUPPORTED,
                 "generated code calls 'function', which the runtime does not have");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_file_loads),
        cmocka_unit_test(damaged_headers_are_refused),
        cmocka_unit_test(damaged_sections_are_refused),
        cmocka_unit_test(damaged_relocations_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
