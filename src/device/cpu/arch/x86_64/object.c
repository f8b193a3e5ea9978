#include "device/cpu/arch/arch.h"

#include <elf.h>
#include <string.h>

const uint16_t arch_elf_machine = EM_X86_64;
const char arch_name[] = "x86-64";

/* jmp *[rip+2]; ud2; address. The address serves as the GOT entry too. */
void arch_write_stub(char *stub, const void *address) {
    static const unsigned char code[8] = {0xff, 0x25, 0x02, 0x00, 0x00, 0x00, 0x0f, 0x0b};
    memcpy(stub, code, sizeof code);
    memcpy(stub + 8, &address, sizeof address);
}

static smelt_status bad(const char *what) {
    return fail(SMELT_ERROR_FORMAT, "object file: %s", what);
}

smelt_status arch_relocate(const struct arch_relocation *r) {
    size_t width = r->type == R_X86_64_64 || r->type == R_X86_64_PC64 ? 8 : 4;
    int64_t value;
    if (r->room < width) return bad("a relocation lies outside its section");
    switch (r->type) {
    case R_X86_64_64:
        value = (int64_t)(intptr_t)r->symbol + r->addend;
        break;
    case R_X86_64_PC64:
    case R_X86_64_PC32:
        value = r->symbol + r->addend - r->place;
        break;
    case R_X86_64_PLT32:
        value = (r->outside ? r->stub : r->symbol) + r->addend - r->place;
        break;
    case R_X86_64_GOTPCREL:
    case R_X86_64_GOTPCRELX:
    case R_X86_64_REX_GOTPCRELX:
        value = r->stub + 8 + r->addend - r->place;
        break;
    case R_X86_64_32:
    case R_X86_64_32S:
        /* Only debug sections refer to each other by 32-bit offsets; an address would not fit. */
        value = r->addend;
        if (!r->debug) return bad("a 32-bit absolute relocation");
        break;
    default:
        return fail(SMELT_ERROR_FORMAT, "object file: relocation type %u is not known", r->type);
    }
    if (width == 4 && r->type != R_X86_64_32 && value != (int32_t)value)
        return bad("a relocation is out of reach");
    memcpy(r->place, &value, width);
    return SMELT_OK;
}
