#include "base/printable.h"

#include <stdint.h>
#include <string.h>

/* The bytes of the character at `at`, 0 if it is not UTF-8. */
static size_t character(const unsigned char *at, uint32_t *code) {
    size_t length = *at < 0x80 ? 1 : *at < 0xc2 ? 0 : *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : *at < 0xf5 ? 4 : 0;
    *code = length < 2 ? *at : *at & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80) return 0;
        *code = *code << 6 | (at[i] & 0x3f);
    }
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    bool surrogate = *code >= 0xd800 && *code < 0xe000;
    return *code < least[length] || surrogate || *code > 0x10ffff ? 0 : length;
}

static bool is_control(uint32_t code) {
    if (code == '\n' || code == '\t') return false;
    bool reorders = (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) ||
                    code == 0x200e || code == 0x200f;
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || reorders;
}

void text_add_printable(struct text *text, const char *string) {
    for (const unsigned char *at = (const unsigned char *)string; *at;) {
        uint32_t code;
        size_t length = character(at, &code);
        if (length && !is_control(code)) {
            text_append(text, (const char *)at, length);
            at += length;
            continue;
        }
        for (size_t i = 0; i < (length ? length : 1); i++) text_addf(text, "\\x%02x", at[i]);
        at += length ? length : 1;
    }
}
