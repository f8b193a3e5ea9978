/* Formats and arguments of log lines: any bytes give a line of bounded length. The input: the number of
 * arguments, a byte each for their kinds and counts, then the format. Its bytes are also the arguments'
 * values. */
#include "base/format.h"

#include <stdlib.h>
#include <string.h>

#define MOST_ARGUMENTS 12

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1) return 0;
    size_t count = data[0] % MOST_ARGUMENTS;
    if (size < 1 + count) return 0;
    struct format_argument arguments[MOST_ARGUMENTS] = {{0}};
    /* Of exactly its length, so that reads past its end are detected. */
    size_t length = size - 1 - count;
    char *format = malloc(length ? length : 1);
    if (!format) return 0;
    if (length) memcpy(format, data + 1 + count, length);
    for (size_t a = 0; a < count; a++) {
        struct format_argument *argument = &arguments[a];
        argument->kind = (enum format_kind)(1 + data[1 + a] % 5);
        argument->count = 1 + (data[1 + a] >> 4) % 4;
        argument->bytes = 1 << (data[1 + a] >> 6);
        for (size_t w = 0; w < 4; w++)
            for (size_t b = 0; b < 8; b++)
                argument->words[w] = argument->words[w] << 8 | data[(a * 32 + w * 8 + b) % size];
        argument->text = format;
        argument->text_length = length;
    }
    struct text line = {0};
    format_line(format, length, arguments, (int)count, &line);
    if (line.length > FORMAT_LONGEST_LINE) abort();
    text_free(&line);
    free(format);
    return 0;
}
