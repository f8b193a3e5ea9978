/* Layouts in the words of <smelt/layout>, and pictures of them. */
#include "base/error.h"
#include "base/text.h"
#include "smelt/tensor.h"

#include <stdlib.h>
#include <string.h>

#define MOST_SIDE 64  /* rows and columns of a picture */
#define MOST_DEPTH 8  /* of layouts within layouts */
#define MOST_NODES 16 /* layouts of one text */

/* One layout: its rows and columns, and either strides or two layouts, by number. */
struct layout {
    int64_t rows, columns, row_stride, column_stride;
    int outer, inner; /* -1: it has strides */
};

struct parser {
    const char *text, *at;
    struct layout nodes[MOST_NODES];
    int count;
};

static smelt_status wrong(const struct parser *parser, const char *expected) {
    return fail(SMELT_ERROR_INVALID_ARGUMENT, "layout '%s': '%.20s' at character %d, expected %s",
                parser->text, parser->at, (int)(parser->at - parser->text) + 1, expected);
}

static bool accept(struct parser *parser, const char *word) {
    parser->at += strspn(parser->at, " ");
    size_t length = strlen(word);
    if (strncmp(parser->at, word, length) != 0) return false;
    parser->at += length;
    return true;
}

/* Numbers in <…>() or in (…). */
static smelt_status read_numbers(struct parser *parser, int count, int64_t *numbers) {
    bool known = accept(parser, "<");
    if (!known && !accept(parser, "(")) return wrong(parser, "'<' or '('");
    for (int i = 0; i < count; i++) {
        char *end;
        if (i && !accept(parser, ",")) return wrong(parser, "','");
        parser->at += strspn(parser->at, " ");
        long long number = strtoll(parser->at, &end, 10);
        if (end == parser->at || number < 0 || number > INT32_MAX)
            return wrong(parser, "a size or stride from 0 to 2147483647");
        numbers[i] = number;
        parser->at = end;
    }
    if (!accept(parser, known ? ">" : ")")) return wrong(parser, known ? "'>'" : "')'");
    if (known && (!accept(parser, "(") || !accept(parser, ")"))) return wrong(parser, "'()'");
    return SMELT_OK;
}

static smelt_status read_layout(struct parser *parser, int depth, int *node) {
    int64_t n[4] = {0};
    struct layout made = {.outer = -1, .inner = -1};
    if (accept(parser, "row_major")) {
        TRY(read_numbers(parser, 2, n));
        made.row_stride = n[1], made.column_stride = 1;
    } else if (accept(parser, "column_major")) {
        TRY(read_numbers(parser, 2, n));
        made.row_stride = 1, made.column_stride = n[0];
    } else if (accept(parser, "strided")) {
        TRY(read_numbers(parser, 4, n));
        made.row_stride = n[2], made.column_stride = n[3];
    } else if (depth < MOST_DEPTH && accept(parser, "blocked")) {
        if (!accept(parser, "(")) return wrong(parser, "'('");
        TRY(read_layout(parser, depth + 1, &made.outer));
        if (!accept(parser, ",")) return wrong(parser, "','");
        TRY(read_layout(parser, depth + 1, &made.inner));
        if (!accept(parser, ")")) return wrong(parser, "')'");
        n[0] = parser->nodes[made.outer].rows * parser->nodes[made.inner].rows;
        n[1] = parser->nodes[made.outer].columns * parser->nodes[made.inner].columns;
    } else {
        return wrong(parser, "row_major, column_major, strided or blocked");
    }
    made.rows = n[0], made.columns = n[1];
    if (parser->count == MOST_NODES || n[0] < 1 || n[1] < 1 || n[0] > MOST_SIDE || n[1] > MOST_SIDE)
        return fail(SMELT_ERROR_LIMIT,
                    "layout '%s': pictures have 1 to %d rows and columns, of at most %d layouts",
                    parser->text, MOST_SIDE, MOST_NODES);
    *node = parser->count;
    parser->nodes[parser->count++] = made;
    return SMELT_OK;
}

static int64_t offset_at(const struct parser *parser, int node, int64_t row, int64_t column) {
    const struct layout *l = &parser->nodes[node];
    if (l->outer < 0) return row * l->row_stride + column * l->column_stride;
    const struct layout *inner = &parser->nodes[l->inner];
    return offset_at(parser, l->outer, row / inner->rows, column / inner->columns) * inner->rows *
               inner->columns +
           offset_at(parser, l->inner, row % inner->rows, column % inner->columns);
}

static void draw_rule(struct text *text, int64_t columns, int width) {
    text_add(text, "    +");
    for (int64_t c = 0; c < columns; c++) {
        for (int i = 0; i < width + 2; i++) text_add(text, "-");
        text_add(text, "+");
    }
    text_add(text, "\n");
}

static void draw(const struct parser *parser, int node, struct text *text) {
    const struct layout *l = &parser->nodes[node];
    int64_t most = l->columns - 1;
    int width = 2;
    for (int64_t r = 0; r < l->rows; r++)
        for (int64_t c = 0; c < l->columns; c++) {
            int64_t offset = offset_at(parser, node, r, c);
            most = offset > most ? offset : most;
        }
    for (int64_t rest = most / 100; rest; rest /= 10) width++;
    for (int64_t c = 0; c < l->columns; c++)
        text_addf(text, "%s%*lld", c ? "   " : "      ", width, (long long)c);
    text_add(text, "\n");
    for (int64_t r = 0; r < l->rows; r++) {
        draw_rule(text, l->columns, width);
        text_addf(text, "%3lld |", (long long)r);
        for (int64_t c = 0; c < l->columns; c++)
            text_addf(text, " %*lld |", width, (long long)offset_at(parser, node, r, c));
        text_add(text, "\n");
    }
    draw_rule(text, l->columns, width);
}

smelt_status smelt_layout_picture(const char *layout, char **text) {
    if (!layout || !text)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "layout picture: %s is NULL", layout ? "text" : "layout");
    struct parser parser = {.text = layout, .at = layout};
    struct text picture = {0};
    int node;
    TRY(read_layout(&parser, 0, &node));
    if (*(parser.at += strspn(parser.at, " "))) return wrong(&parser, "its end");
    draw(&parser, node, &picture);
    if (picture.failed) {
        text_free(&picture);
        return fail_out_of_memory(picture.length);
    }
    *text = picture.data;
    return SMELT_OK;
}
