/* clang's messages: their parts, and their words. */
#include "frontend/message.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

bool message_read(const char *line, size_t length, struct message *out) {
    /* From the left the first ":N:N: " is the place: file names may hold colons. */
    for (size_t i = 0; i + 6 < length; i++) {
        int used = 0;
        if (line[i] != ':' || !isdigit((unsigned char)line[i + 1])) continue;
        if (sscanf(line + i, ":%d:%d: %31[a-z ]:%n", &out->line, &out->column, out->kind, &used) != 3 ||
            !used)
            continue;
        if (i + (size_t)used > length || i >= sizeof out->file) return false;
        memcpy(out->file, line, i);
        out->file[i] = 0;
        out->text = line + i + used;
        out->length = length - i - (size_t)used;
        while (out->length && *out->text == ' ') {
            out->text++;
            out->length--;
        }
        return true;
    }
    return false;
}

bool message_is_ours(const char *file) {
    if (strstr(file, "<at ")) return false;
    return !*file || file[0] == '<' || strstr(file, "/<");
}

void message_add_text(const char *text, size_t length, struct text *out) {
    static const char *const words[][2] = {{"__attribute__((opencl_global_device))", "device"},
                                           {"__attribute__((opencl_local))", "threadgroup"},
                                           {"__attribute__((opencl_global_host))", "constant"},
                                           {"__global_device", "device"},
                                           {"__global_host", "constant"},
                                           {"__local", "threadgroup"},
                                           {"SYdevice", "device"},
                                           {"metal::__vector::", "metal::"},
                                           {"metal::__packed::", "metal::"},
                                           {"_Float16", "half"},
                                           {"__bf16", "bfloat"}};
    for (size_t i = 0; i < length;) {
        size_t w = 0, count = sizeof words / sizeof *words;
        for (; w < count; w++) {
            size_t n = strlen(words[w][0]);
            if (i + n <= length && memcmp(text + i, words[w][0], n) == 0) {
                text_add(out, words[w][1]);
                i += n;
                break;
            }
        }
        if (w == count) text_append(out, text + i++, 1);
    }
}

size_t message_useful_length(const char *text, size_t length) {
    static const char hint[] = "; did you mean '__smelt", warning[] = " [-W";
    const char *cut = memmem(text, length, hint, strlen(hint));
    if (!cut) cut = memmem(text, length, warning, strlen(warning));
    return cut ? (size_t)(cut - text) : length;
}

const char *message_said(const char *text, size_t length) {
    static const char start[] = "static assertion failed";
    const char *end = length > strlen(start) && memcmp(text, start, strlen(start)) == 0
                          ? memmem(text, length, "': ", 3)
                          : NULL;
    return end ? end + 3 : text;
}
