/* A string that grows. A failed allocation is remembered in `failed` and checked once at the end. */
#ifndef SMELT_BASE_TEXT_H
#define SMELT_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct text {
    char *data; /* NULL or zero-terminated */
    size_t length;
    size_t capacity;
    bool failed;
};

/* Reserves `more` bytes. */
void text_reserve(struct text *text, size_t more);
void text_append(struct text *text, const char *bytes, size_t count);
void text_add(struct text *text, const char *string);
void text_addf(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_free(struct text *text);

/* The string, never NULL. */
const char *text_string(const struct text *text);

/* A heap copy of `count` bytes with a terminating zero, or NULL. */
char *string_copy(const char *bytes, size_t count);

#endif
