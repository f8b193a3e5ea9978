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
    const unsigned char *start = (const unsigned char *)string, *at = start, *plain = start;
    bool cut = false;
    text_add(text, "\"");
    while (*at && !cut) {
        size_t length = character_length(at);
        bool odd = !length || *at == '"' || *at == '\\' || *at < 0x20 || *at == 0x7f;
        cut = (size_t)(at - start) + length > most;
        if (!odd && !cut) {
            at += length;
            continue;
        }
        /* The bytes before, unchanged. */
        text_append(text, (const char *)plain, (size_t)(at - plain));
        if (cut)
            text_add(text, "…");
        else if (!length)
            text_add(text, "\\ufffd");
        else if (*at == '"' || *at == '\\')
            text_addf(text, "\\%c", *at);
        else
            text_addf(text, "\\u%04x", *at);
        at += length ? length : 1;
        plain = at;
    }
    if (!cut) text_append(text, (const char *)plain, (size_t)(at - plain));
    text_add(text, "\"");
}
