#include "json.h"

#include <math.h>
#include <string.h>

/* Bytes of the UTF-8 character at `text`, 0 if it is invalid: overlong forms, surrogates and values past
 * U+10FFFF. */
static int character_length(const unsigned char *text) {
    unsigned first = text[0];
    int length = first < 0x80 ? 1 : first >= 0xc2 && first < 0xe0 ? 2 : first >= 0xe0 && first < 0xf0 ? 3 : 0;
    if (first >= 0xf0 && first < 0xf5) length = 4;
    for (int i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80) return 0;
    if (first == 0xe0 && text[1] < 0xa0) return 0;
    if (first == 0xed && text[1] >= 0xa0) return 0;
    if (first == 0xf0 && text[1] < 0x90) return 0;
    if (first == 0xf4 && text[1] >= 0x90) return 0;
    return length;
}

void json_print_string(FILE *out, const char *text) {
    if (!text) {
        fputs("null", out);
        return;
    }
    fputc('"', out);
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        int length = character_length(at);
        if (length == 0) {
            fputs("\\ufffd", out);
            at++;
        } else if (length > 1) {
            fwrite(at, 1, (size_t)length, out);
            at += length;
        } else {
            if (*at == '"' || *at == '\\')
                fprintf(out, "\\%c", *at);
            else if (*at < 0x20 || *at == 0x7f)
                fprintf(out, "\\u%04x", *at);
            else
                fputc(*at, out);
            at++;
        }
    }
    fputc('"', out);
}

void json_print_number(FILE *out, double value) {
    if (isfinite(value))
        fprintf(out, "%.9g", value);
    else
        fputs("null", out);
}
