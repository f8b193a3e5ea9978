/* The user's lines that messages are about, and columns in them. */
#include "base/file.h"
#include "frontend/diagnostic.h"
#include "frontend/message.h"
#include "frontend/overlay.h"

#include <stdio.h>
#include <string.h>

static const char *line_of(const char *text, int line, size_t *length) {
    for (; text && line > 1; line--) {
        text = strchr(text, '\n');
        if (text) text++;
    }
    if (text) *length = strcspn(text, "\r\n");
    return text;
}

/* The user's own text under this name: one of the translation's, else a file. */
static const char *user_text(const struct translation *t, const char *name, struct text *storage) {
    for (int i = 0; i < TRANSLATION_MAX_TEXTS; i++)
        if (t->texts[i].name && strcmp(t->texts[i].name, name) == 0) return t->texts[i].text;
    /* A #line directive can name any file. */
    if (overlay_holds(t->search_paths, name) && file_read(name, storage) == SMELT_OK)
        return text_string(storage);
    return NULL;
}

const char *user_line(const struct translation *t, const char *file, int line, struct text *storage,
                      size_t *length) {
    return line_of(user_text(t, file, storage), line, length);
}

/* The line of `text` that #line directives and line markers call file:line; its bytes [*start, *end). */
static bool physical_line(const struct text *text, const char *file, int line, size_t *start, size_t *end) {
    char current[512] = "";
    int number = 1;
    for (size_t at = 0; at < text->length;) {
        size_t stop = at + strcspn(text->data + at, "\n");
        const char *l = text->data + at;
        char name[512];
        int next, used = 0;
        bool marker = *l == '#' && (sscanf(l, "#line %d \"%511[^\"\n]\"%n", &next, name, &used) == 2 ||
                                    sscanf(l, "# %d \"%511[^\"\n]\"%n", &next, name, &used) == 2);
        if (marker) {
            snprintf(current, sizeof current, "%s", name);
            number = next;
        } else {
            if (number == line && strcmp(current, file) == 0) {
                *start = at;
                *end = stop;
                return true;
            }
            number++;
        }
        at = stop + 1;
    }
    return false;
}

static bool same_token(const struct tokens *a, uint32_t i, const struct tokens *b, uint32_t j) {
    const struct token *x = &a->items[i], *y = &b->items[j];
    return x->length == y->length && memcmp(a->text + x->start, b->text + y->start, x->length) == 0;
}

/* This many tokens that agree are taken for the same place. */
#define ENOUGH_TOKENS 6

static int agreement(const struct tokens *ours, uint32_t i, const struct tokens *theirs, uint32_t j) {
    int count = 0;
    if (j == theirs->count) return i == ours->count ? ENOUGH_TOKENS : 0;
    while (count < ENOUGH_TOKENS && i < ours->count && j < theirs->count &&
           same_token(ours, i++, theirs, j++))
        count++;
    return j == theirs->count && i == ours->count ? ENOUGH_TOKENS : count;
}

/* Moves *j past the macro use in `theirs` and *i past its replacement in `ours`. The replacement's brackets
 * are balanced; of the places after which both lines continue alike, the best one is taken. */
static bool skip_expansion(const struct tokens *ours, uint32_t *i, const struct tokens *theirs, uint32_t *j) {
    uint32_t ends[2] = {*j + 1, *j + 1}, best_i = 0, best_j = 0;
    int best = 0;
    if (token_is(theirs, *j + 1, "(") && theirs->items[*j + 1].partner > *j + 1)
        ends[0] = theirs->items[*j + 1].partner + 1;
    for (int e = 0; e < 2; e++)
        for (uint32_t at = *i, steps = 0; at <= ours->count && steps < FARTHEST_LOOK; steps++) {
            int score = agreement(ours, at, theirs, ends[e]);
            if (score > best) {
                best = score;
                best_i = at;
                best_j = ends[e];
            }
            if (at == ours->count || ours->items[at].partner < at) break;
            at = ours->items[at].partner + 1;
        }
    if (!best) return false;
    *i = best_i;
    *j = best_j;
    return true;
}

/* The byte of the line as it was written where token `target` of the preprocessed line comes from: the same
 * token, or the macro that it is from. */
static size_t aligned(const struct tokens *ours, uint32_t target, const struct tokens *theirs) {
    uint32_t i = 0, j = 0;
    while (i < ours->count && j < theirs->count) {
        if (same_token(ours, i, theirs, j)) {
            if (i == target) return theirs->items[j].start;
            i++;
            j++;
            continue;
        }
        uint32_t macro = j;
        bool known = skip_expansion(ours, &i, theirs, &j);
        if (known && i <= target) continue;
        /* Inside the replacement; a macro's argument can be shown itself. */
        for (uint32_t k = macro + 1; known && k < j; k++)
            if (same_token(ours, target, theirs, k) && token_is_identifier(theirs, k))
                return theirs->items[k].start;
        return theirs->items[macro].start;
    }
    return 0;
}

int user_line_column(const struct translation *t, uint32_t origin, const char *user, size_t user_length) {
    const char *source = text_string(&t->source);
    size_t line_start = origin;
    while (line_start > 0 && source[line_start - 1] != '\n') line_start--;
    size_t column = origin - line_start, length = strcspn(source + line_start, "\r\n");
    if (length == user_length && memcmp(source + line_start, user, user_length) == 0) return (int)column + 1;
    /* Preprocessed: macros are replaced, white space and comments differ. */
    struct tokens ours = {0}, theirs = {0};
    int result = 0;
    if (tokens_read(source + line_start, length, &ours) == SMELT_OK &&
        tokens_read(user, user_length, &theirs) == SMELT_OK) {
        uint32_t index = 0;
        while (index + 1 < ours.count && ours.items[index + 1].start <= column) index++;
        if (index < ours.count) result = (int)aligned(&ours, index, &theirs) + 1;
        /* After the last token, where something is missing. */
        if (result && column >= ours.items[index].start + ours.items[index].length)
            result += (int)ours.items[index].length;
    }
    tokens_free(&ours);
    tokens_free(&theirs);
    return result;
}

int user_line_message_column(const struct translation *t, const struct message *m, const char *user,
                             size_t user_length) {
    size_t start, end;
    if (!t->program.text.data || !physical_line(&t->program.text, m->file, m->line, &start, &end))
        return m->column;
    uint32_t position = (uint32_t)(start + (size_t)(m->column > 0 ? m->column - 1 : 0));
    return user_line_column(t, program_origin(&t->program, position), user, user_length);
}

int user_line_place(const struct text *source, uint32_t position, char file[512]) {
    int number = 1;
    const char *text = text_string(source);
    file[0] = 0;
    for (size_t at = 0; at < source->length;) {
        size_t stop = at + strcspn(text + at, "\n");
        int next, used = 0;
        char name[512];
        bool marker =
            text[at] == '#' && (sscanf(text + at, "#line %d \"%511[^\"\n]\"%n", &next, name, &used) == 2 ||
                                sscanf(text + at, "# %d \"%511[^\"\n]\"%n", &next, name, &used) == 2);
        if (position <= stop) break;
        if (marker) snprintf(file, 512, "%s", name);
        number = marker ? next : number + 1;
        at = stop + 1;
    }
    return number;
}

int diagnostics_column(const struct translation *t, const char *file, int line, int column) {
    struct message place = {.line = line, .column = column};
    struct text storage = {0};
    size_t length = 0;
    snprintf(place.file, sizeof place.file, "%s", file);
    const char *user = user_line(t, file, line, &storage, &length);
    int result = user && column > 0 ? user_line_message_column(t, &place, user, length) : 0;
    text_free(&storage);
    return result;
}

bool diagnostics_line(const struct translation *t, const char *file, int line, struct text *out) {
    struct text storage = {0};
    size_t length = 0;
    const char *user = line > 0 ? user_line(t, file, line, &storage, &length) : NULL;
    if (user) text_append(out, user, length);
    text_free(&storage);
    return user != NULL;
}
