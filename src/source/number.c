/* 1.5h → 1.5f16, 1.5bf → ((bfloat)1.5f): Metal's suffixes of decimal and hexadecimal real numbers. A number
 * without a suffix is a float: 1.5 → 1.5f. (clang's mode for this is lost when it instantiates templates.) */
#include "source/rewriter.h"
#include "source/structure.h"

#include <ctype.h>
#include <string.h>

void rewrite_number(struct rewriter *r, uint32_t i) {
    const struct token *token = &r->tokens->items[i];
    const char *digits = r->tokens->text + token->start;
    uint32_t length = token->length;
    bool hexadecimal = length > 1 && digits[0] == '0' && (digits[1] | 32) == 'x';
    if (hexadecimal && !memchr(digits, 'p', length) && !memchr(digits, 'P', length)) return;
    bool half = length > 1 && (digits[length - 1] | 32) == 'h';
    bool bfloat = length > 2 && (digits[length - 2] | 32) == 'b' && (digits[length - 1] | 32) == 'f';
    bool real = hexadecimal || memchr(digits, '.', length) || memchr(digits, 'e', length) ||
                memchr(digits, 'E', length);
    /* 6.5504e+4F16 is how clang spells __FLT16_MAX__. */
    bool suffixed =
        length > 3 && (digits[length - 3] | 32) == 'f' && memcmp(digits + length - 2, "16", 2) == 0;
    if (suffixed) return;
    if (half || bfloat) {
        length -= half ? 1 : 2;
        put_instead(r, i,
                    arena_printf(r->arena, half ? "%.*s%sf16" : "((bfloat)%.*s%sf)", (int)length, digits,
                                 real ? "" : ".0"));
    } else if (real && (isdigit((unsigned char)digits[length - 1]) || digits[length - 1] == '.')) {
        put_instead(r, i, arena_printf(r->arena, "%.*sf", (int)length, digits));
    }
}
