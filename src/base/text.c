#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reserve(struct text *text, size_t more) {
    if (text->failed) return false;
    size_t needed = text->length + more + 1;
    if (needed <= text->capacity) return true;
    size_t capacity = text->capacity ? text->capacity : 256;
    while (capacity < needed) capacity *= 2;
    char *grown = realloc(text->data, capacity);
    if (!grown) {
        text->failed = true;
        return false;
    }
    text->data = grown;
    text->capacity = capacity;
    return true;
}

void text_reserve(struct text *text, size_t more) {
    (void)reserve(text, more);
}

void text_append(struct text *text, const char *bytes, size_t count) {
    if (!reserve(text, count)) return;
    if (count) memcpy(text->data + text->length, bytes, count);
    text->length += count;
    text->data[text->length] = 0;
}

void text_add(struct text *text, const char *string) {
    text_append(text, string, strlen(string));
}

/* Most pieces are short: written at once into the room there is, and again if that was too little. */
void text_addf(struct text *text, const char *format, ...) {
    va_list arguments, again;
    if (!reserve(text, 1)) return;
    size_t room = text->capacity - text->length;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(text->data + text->length, room, format, arguments);
    va_end(arguments);
    if (length >= 0 && (size_t)length >= room && reserve(text, (size_t)length))
        vsnprintf(text->data + text->length, (size_t)length + 1, format, again);
    va_end(again);
    if (length >= 0 && !text->failed)
        text->length += (size_t)length;
    else if (text->data)
        text->data[text->length] = 0;
}

void text_free(struct text *text) {
    free(text->data);
    *text = (struct text){0};
}

const char *text_string(const struct text *text) {
    return text->data ? text->data : "";
}

char *string_copy(const char *bytes, size_t count) {
    char *copy = malloc(count + 1);
    if (!copy) return NULL;
    if (count) memcpy(copy, bytes, count);
    copy[count] = 0;
    return copy;
}
