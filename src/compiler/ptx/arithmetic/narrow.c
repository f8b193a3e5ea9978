/* Avoids two errors of NVIDIA's assembler (seen in 12.9 and 13.0) in 16-bit integer operations: they are
 * computed in 32 bits.
 *
 * For max(x, 1) == 1 and similar, it asks the instruction that computes the maximum which operand it took,
 * and inverts the answer. For -x and |x|, it ignores that -(-32768) is -32768: it takes the 32 bits in which
 * it computed them for the widened result. LLVM selects these instructions late, so the text is changed. */
#include "base/text.h"
#include "compiler/ptx/ptx.h"

#include <stdlib.h>
#include <string.h>

static const char *const affected[] = {"neg.s16", "abs.s16", "min.s16", "max.s16", "min.u16", "max.u16"};

struct operand {
    const char *text;
    int length;
};

/* The operands of the instruction at `at`, separated by commas, up to its semicolon. */
static int find_operands(const char *at, struct operand *operands, int most) {
    int count = 0;
    do {
        at += strspn(at, " \t,");
        operands[count] = (struct operand){at, (int)strcspn(at, ",;\n")};
        at += operands[count++].length;
    } while (*at == ',' && count < most);
    return *at == ';' ? count : 0;
}

/* The instruction in 32 bits, with its operands widened as its type says: constants may replace registers,
 * but not for every type. */
static void add_wide(struct text *out, const char *name, const struct operand *operands, int count) {
    char sign = name[4];
    text_add(out, "\t{ .reg .b16 n; .reg .b32 a, b;");
    for (int i = 1; i < count; i++)
        text_addf(out, " mov.b16 n, %.*s; cvt.%c32.%c16 %c, n;", operands[i].length, operands[i].text, sign,
                  sign, "ab"[i - 1]);
    text_addf(out, " %.3s.%c32 a, a%s; cvt.u16.u32 %.*s, a; }", name, sign, count > 2 ? ", b" : "",
              operands[0].length, operands[0].text);
}

static const char *affected_name(const char *line) {
    if (*line != '\t') return NULL;
    for (size_t i = 0; i < sizeof affected / sizeof *affected; i++)
        if (strncmp(line + 1, affected[i], 7) == 0 && strchr(" \t", line[8])) return affected[i];
    return NULL;
}

void ptx_widen_narrow(struct text *out, const char *ptx) {
    text_reserve(out, strlen(ptx));
    while (*ptx) {
        size_t length = strcspn(ptx, "\n");
        struct operand operands[3];
        const char *name = affected_name(ptx);
        int count = name ? find_operands(ptx + 8, operands, 3) : 0;
        if (count > 1)
            add_wide(out, name, operands, count);
        else
            text_append(out, ptx, length);
        ptx += length;
        if (*ptx) text_append(out, ptx++, 1);
    }
}
