#include "base/json.h"

/* Bytes of the UTF-8 character at `text`, 0 if there is none: overlong forms, surrogates and values past
 * U+10FFFF are none. */
static size_t character_length(const unsigned char *text) {
    unsigned first = text[0], second;
    size_t length = first < 0x80   ? 1
                    : first < 0xc2 ? 0
                    : first < 0xe0 ? 2
                    : first < 0xf0 ? 3
                    : first < 0xf5 ? 4
                                   : 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80) return 0;
    second = length > 1 ? text[1] : 0;
    bool bad = (first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0) ||
               (first == 0xf0 && second < 0x90) || (first == 0xf4 && second >= 0x90);
    return bad ? 0 : length;
}

void json_add_string(struct text *text, const char *string, size_t most) {
    const unsigned char *at = (const unsigned char *)string;
    text_add(text, "\"");
    while (*at) {
        size_t length = character_length(at);
        if ((size_t)(at - (const unsigned char *)string) + length > most) {
            text_add(text, "…");
            break;
        }
        if (!length)
            text_add(text, "\\ufffd");
        else if (*at == '"' || *at == '\\')
            text_addf(text, "\\%c", *at);
        else if (*at < 0x20 || *at == 0x7f)
            text_addf(text, "\\u%04x", *at);
        else
            text_append(text, (const char *)at, length);
        at += length ? length : 1;
    }
    text_add(text, "\"");
}
