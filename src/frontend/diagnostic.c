#include "frontend/diagnostic.h"
#include "abi/check.h"
#include "base/file.h"
#include "frontend/overlay.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_MESSAGES 20

/* file:line:column: kind: message */
struct message {
    char file[512];
    int line, column;
    char kind[32];
    const char *text;
    size_t length;
};

static bool parse(const char *line, size_t length, struct message *out) {
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

/* clang may put its working folder in front of a name. */
static bool is_ours(const char *file) {
    if (strstr(file, "<at ")) return false;
    return !*file || file[0] == '<' || strstr(file, "/<");
}

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

/* As many tokens that agree are taken for the same place. */
#define ENOUGH_TOKENS 6

static int agreement(const struct tokens *ours, uint32_t i, const struct tokens *theirs, uint32_t j) {
    int count = 0;
    if (j == theirs->count) return i == ours->count ? ENOUGH_TOKENS : 0;
    while (count < ENOUGH_TOKENS && i < ours->count && j < theirs->count &&
           same_token(ours, i++, theirs, j++))
        count++;
    return j == theirs->count && i == ours->count ? ENOUGH_TOKENS : count;
}

/* Where the macro use at `theirs` [*j, …) ends, and its replacement at `ours` [*i, …): both move behind. The
 * replacement's brackets are closed; of the places behind which the line goes on alike the best is taken. */
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

/* The column in the user's line of a byte of the program's input; 0 if it cannot be told. */
static int user_column(const struct translation *t, uint32_t origin, const char *user, size_t user_length) {
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
        /* Behind the last token, where something is missing. */
        if (result && column >= ours.items[index].start + ours.items[index].length)
            result += (int)ours.items[index].length;
    }
    tokens_free(&ours);
    tokens_free(&theirs);
    return result;
}

/* The same for a place in the rewritten text, as clang reports it. */
static int column_of_message(const struct translation *t, const struct message *m, const char *user,
                             size_t user_length) {
    size_t start, end;
    if (!t->program.text.data || !physical_line(&t->program.text, m->file, m->line, &start, &end))
        return m->column;
    uint32_t position = (uint32_t)(start + (size_t)(m->column > 0 ? m->column - 1 : 0));
    return user_column(t, program_origin(&t->program, position), user, user_length);
}

/* Our words for address spaces become Metal's again. */
static void add_message_text(const char *text, size_t length, struct text *out) {
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

/* Hints at names of ours, and the names of clang's warnings that are errors, are left out. */
static size_t useful_length(const char *text, size_t length) {
    static const char hint[] = "; did you mean '__smelt", warning[] = " [-W";
    const char *cut = memmem(text, length, hint, strlen(hint));
    if (!cut) cut = memmem(text, length, warning, strlen(warning));
    return cut ? (size_t)(cut - text) : length;
}

static const char *shown_name(const char *file) {
    return strncmp(file, "./", 2) == 0 ? file + 2 : file;
}

/* Of a line longer than this only the place that is meant is shown. */
#define LONGEST_LINE 400
#define SHOWN_BEFORE 60

/* The line, and a caret under its column, if that is above 0. */
static void add_line(const char *line, size_t length, int column, struct text *out) {
    size_t first = 0;
    if (length > LONGEST_LINE) {
        if (column > SHOWN_BEFORE && (size_t)column <= length) first = (size_t)column - SHOWN_BEFORE;
        if (length - first > LONGEST_LINE) length = first + LONGEST_LINE;
    }
    /* Whole characters of UTF-8. */
    while (first && ((unsigned char)line[first] & 0xc0) == 0x80) first--;
    while (length > first && length - first >= LONGEST_LINE && ((unsigned char)line[length] & 0xc0) == 0x80)
        length--;
    text_add(out, "\n  ");
    text_append(out, line + first, length - first);
    if (column <= 0) return;
    text_add(out, "\n  ");
    for (size_t i = first; i + 1 < (size_t)column; i++)
        text_add(out, i < length && line[i] == '\t' ? "\t" : " ");
    text_add(out, "^");
}

/* An #include or #embed that leads out of the folders clang sees: see overlay.h. */
static bool is_outside(const char *text, size_t length) {
    static const char end[] = "' file not found";
    const char *quote = memmem(text, length, end, sizeof end - 1);
    if (!quote || *text != '\'') return false;
    return text[1] == '/' || memmem(text, (size_t)(quote - text), "..", 2);
}

static void add_kind(const char *kind, const char *file, int line_number, int column, const char *text,
                     size_t length, const char *line, size_t line_length, struct text *out) {
    text_addf(out, "%s%s:%d", out->length ? "\n" : "", shown_name(file), line_number);
    if (column > 0) text_addf(out, ":%d", column);
    text_addf(out, ": %s: ", kind);
    add_message_text(text, length, out);
    if (is_outside(text, length))
        text_add(out, ": a source can include files only from its folder and the include paths (-I)");
    if (line) add_line(line, line_length, column, out);
}

static void add_described(const char *file, int line_number, int column, const char *text, size_t length,
                          const char *line, size_t line_length, struct text *out) {
    add_kind("error", file, line_number, column, text, useful_length(text, length), line, line_length, out);
}

/* Lines of the entry point are named after the byte of the source that they are about: "<at 120>". */
static bool is_about_byte(const char *file, uint32_t *position) {
    const char *name = strstr(file, "<at ");
    return name && sscanf(name, "<at %u>", position) == 1;
}

/* A static_assert that the rewriter put among the user's lines. */
static bool is_own_assertion(const char *text, size_t length) {
    static const char start[] = "static assertion failed due to requirement '__smelt::is_";
    return length > strlen(start) && memcmp(text, start, strlen(start)) == 0;
}

/* The message of our static_assert follows the condition. */
static const char *said(const char *text, size_t length) {
    static const char start[] = "static assertion failed";
    const char *end = length > strlen(start) && memcmp(text, start, strlen(start)) == 0
                          ? memmem(text, length, "': ", 3)
                          : NULL;
    return end ? end + 3 : text;
}

static void describe(const struct translation *t, const struct message *m, const char *text, size_t length,
                     struct text *out) {
    uint32_t position;
    if (is_about_byte(m->file, &position)) {
        const char *words = said(text, length);
        char *message = string_copy(words, useful_length(words, length - (size_t)(words - text)));
        if (message) diagnostics_add(t, position, message, out);
        free(message);
        return;
    }
    if (is_own_assertion(text, length)) {
        const char *words = said(text, length);
        length -= (size_t)(words - text);
        text = words;
    }
    struct text storage = {0};
    size_t line_length = 0;
    const char *line = line_of(user_text(t, m->file, &storage), m->line, &line_length);
    int column = line ? column_of_message(t, m, line, line_length) : m->column;
    add_described(m->file, m->line, column, text, length, line, line_length, out);
    text_free(&storage);
}

/* The file and line of a byte of the source, by its #line directives and line markers. */
static int place_of(const struct text *source, uint32_t position, char file[512]) {
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

void diagnostics_add(const struct translation *t, uint32_t position, const char *message, struct text *out) {
    char file[512];
    int number = place_of(&t->source, position, file);
    if (!*file && t->texts[0].name) snprintf(file, sizeof file, "%s", t->texts[0].name);
    struct text storage = {0};
    size_t line_length = 0;
    const char *line = line_of(user_text(t, file, &storage), number, &line_length);
    int column = line ? user_column(t, position, line, line_length) : 0;
    add_described(file, number, column, message, strlen(message), line, line_length, out);
    text_free(&storage);
}

/* Adds a message, unless it is there already: each instantiation of a template repeats its own. */
static void add_placed(const char *kind, const struct translation *t, const struct message *m,
                       struct text *out) {
    struct text storage = {0}, one = {0};
    size_t length = 0;
    const char *line = line_of(user_text(t, m->file, &storage), m->line, &length);
    int column = line ? column_of_message(t, m, line, length) : m->column;
    add_kind(kind, m->file, m->line, column, m->text, m->length, line, length, &one);
    if (one.length && !strstr(text_string(out), one.data))
        text_addf(out, "%s%s", out->length ? "\n" : "", one.data);
    text_free(&one);
    text_free(&storage);
}

/* Each instantiation of a template repeats its errors: said once. */
static bool describe_once(const struct translation *t, const struct message *m, const char *text,
                          size_t length, struct text *out) {
    struct text one = {0};
    describe(t, m, text, length, &one);
    bool fresh = one.length && !strstr(text_string(out), one.data);
    if (fresh) text_addf(out, "%s%s", out->length ? "\n" : "", one.data);
    text_free(&one);
    return fresh;
}

/* The undeclared name of a message, or 0: its position in the text, and *length. */
static const char *undeclared_name(const struct message *m, size_t *length) {
    static const char *const starts[] = {"unknown type name '", "use of undeclared identifier '"};
    for (int i = 0; i < 2; i++) {
        size_t start = strlen(starts[i]);
        if (m->length <= start || memcmp(m->text, starts[i], start) != 0) continue;
        *length = strcspn(m->text + start, "'");
        bool ends = start + *length + 1 == useful_length(m->text, m->length);
        return ends ? m->text + start : NULL;
    }
    return NULL;
}

/* A capital name that nothing declares is, in a body, most likely a template argument left out. */
static void suggest_template(const struct translation *t, const struct message *m, struct text *note) {
    size_t length;
    const char *name = prelude_has_mlx(t->prelude) && !note->length ? undeclared_name(m, &length) : NULL;
    if (!name || !isupper((unsigned char)*name)) return;
    text_addf(note,
              "\nnote: if '%.*s' is a template argument, its value is missing: -t %.*s=VALUE (command line), "
              "template=[(\"%.*s\", VALUE)] (Python) or smelt_run_desc.templates (C)",
              (int)length, name, (int)length, name, (int)length, name);
}

#define SUBSCRIPTS "subscripted value is not an array, pointer, or vector"

/* For a body that indexes a value: most likely an input without dimensions. */
static void suggest_value(const struct translation *t, const struct message *m, struct text *note) {
    if (!prelude_has_mlx(t->prelude) || note->length || m->length < sizeof SUBSCRIPTS - 1 ||
        memcmp(m->text, SUBSCRIPTS, sizeof SUBSCRIPTS - 1) != 0)
        return;
    text_add(note,
             "\nnote: an input without dimensions, such as a number, is a value, not an array; for x[0], "
             "pass an array of shape (1,)");
}

/* Names that are not a body's, and what the body has instead. */
static const char *const foreign_names[][2] = {
    {"kernel",
     "this is the body of a kernel, whose signature is generated; whole functions are for library() in "
     "Python, smelt_library_create in C, or the command without --body"},
    {"threadIdx", "Metal has thread_position_in_threadgroup"},
    {"blockIdx", "Metal has threadgroup_position_in_grid"},
    {"blockDim", "Metal has threads_per_threadgroup"},
    {"gridDim", "Metal has threadgroups_per_grid"},
    {"__syncthreads", "Metal has threadgroup_barrier(mem_flags::mem_threadgroup)"},
    {"gid", "in a body, a thread's place in the grid is thread_position_in_grid"},
    {"tid", "in a body, a thread's place in its group is thread_position_in_threadgroup"},
};

/* For a body in the words of a whole function, or of CUDA. */
static void suggest_name(const struct translation *t, const struct message *m, struct text *note) {
    size_t length;
    const char *name = prelude_has_mlx(t->prelude) && !note->length ? undeclared_name(m, &length) : NULL;
    for (size_t i = 0; name && i < sizeof foreign_names / sizeof *foreign_names; i++)
        if (strlen(foreign_names[i][0]) == length && memcmp(foreign_names[i][0], name, length) == 0)
            text_addf(note, "\nnote: %s", foreign_names[i][1]);
}

#define PRINTS "use of undeclared identifier 'printf'"

/* For a kernel that calls printf: names os_log, and drops clang's "did you mean". */
static void suggest_log(struct message *m, struct text *note) {
    if (m->length < sizeof PRINTS - 1 || memcmp(m->text, PRINTS, sizeof PRINTS - 1) != 0) return;
    m->length = sizeof PRINTS - 1;
    if (note->length) return;
    text_add(
        note,
        "\nnote: a kernel prints by os_log: #include <metal_logging>, then os_log_default.log(\"%d\", i)");
}

/* Whether an error is about the function that clang guessed for printf, at the same place. */
static bool follows_guess(const struct message *m, const struct message *before) {
    return before->text && before->length == sizeof PRINTS - 1 && before->line == m->line &&
           before->column == m->column && strcmp(before->file, m->file) == 0;
}

#define MOST_NOTES 3 /* for one error */

/* Whether a message is a note that says why, about a place in the user's text. */
static bool explains(const struct message *m) {
    static const char *const starts[] = {"in instantiation of ", "candidate "};
    if (strcmp(m->kind, "note") != 0 || is_ours(m->file) || strstr(m->file, "<at ")) return false;
    for (int i = 0; i < 2; i++)
        if (m->length > strlen(starts[i]) && memcmp(m->text, starts[i], strlen(starts[i])) == 0) return true;
    return false;
}

void diagnostics_describe(const struct translation *t, const char *messages, struct text *out) {
    struct text note = {0};
    struct message pending = {.text = NULL}, before = {.text = NULL};
    bool waiting = false; /* an error in the prelude, for which a note may name the user's line */
    int count = 0, notes = MOST_NOTES; /* of the last error; MOST_NOTES where no error was added */
    const char *first_line = messages;
    for (const char *at = messages; *at && count < MAX_MESSAGES;) {
        size_t length = strcspn(at, "\n");
        struct message m;
        if (parse(at, length, &m)) {
            bool error = strstr(m.kind, "error") != NULL;
            if (error && !is_ours(m.file)) {
                suggest_log(&m, &note);
                bool fresh = !follows_guess(&m, &before) && describe_once(t, &m, m.text, m.length, out);
                count += fresh;
                notes = fresh ? 0 : MOST_NOTES;
                suggest_template(t, &m, &note);
                suggest_value(t, &m, &note);
                suggest_name(t, &m, &note);
                before = m;
                waiting = false;
            } else if (error) {
                notes = MOST_NOTES;
                pending = m;
                pending.text = said(m.text, m.length);
                pending.length -= (size_t)(pending.text - m.text);
                waiting = true;
            } else if (notes < MOST_NOTES && explains(&m)) {
                notes++;
                add_placed("note", t, &m, out);
            } else if (waiting && !is_ours(m.file)) {
                count += describe_once(t, &m, pending.text, pending.length, out);
                waiting = false;
            }
        }
        at += length + (at[length] == '\n');
    }
    if (!count && waiting) text_append(out, pending.text, pending.length);
    if (!out->length) text_append(out, first_line, strcspn(first_line, "\n"));
    text_add(out, text_string(&note));
    text_free(&note);
}

/* ---- What is to be ignored. */

#define REQUEST "smelt: ignore"

/* The list of codes in a comment; NULL: it asks for nothing. */
static const char *requested_codes(const char *comment) {
    const char *at = strstr(comment, REQUEST);
    if (!at) return NULL;
    at += sizeof REQUEST - 1;
    return *at == ' ' || *at == '\t' ? at : NULL;
}

/* The next word of such a list, after which *at stands. Words after the first that do not begin as codes do
 * are no part of it. NULL: the list ends. */
static const char *next_code(const char **at, bool first, size_t *length) {
    const char *word = *at + strspn(*at, " \t,");
    *length = 0;
    while (isalnum((unsigned char)word[*length])) ++*length;
    *at = word + *length;
    return *length && (first || strncmp(word, "SM", 2) == 0) ? word : NULL;
}

static bool comment_names(const char *comment, const char *code) {
    const char *at = requested_codes(comment), *word;
    size_t length;
    for (bool first = true; at && (word = next_code(&at, first, &length)); first = false)
        if (strlen(code) == length && strncmp(word, code, length) == 0) return true;
    return false;
}

static bool is_code(const char *word, size_t length) {
    for (const char *code = CHECK_CODES; *code; code += 6)
        if (length == 5 && strncmp(word, code, 5) == 0) return true;
    return false;
}

static bool line_ignores(const struct translation *t, const char *file, int line, bool must_be_alone,
                         const char *code) {
    struct text text = {0};
    bool found = false;
    if (diagnostics_line(t, file, line, &text)) {
        const char *whole = text_string(&text), *comment = strstr(whole, "//");
        bool alone = comment && strspn(whole, " \t") == (size_t)(comment - whole);
        found = comment && (alone || !must_be_alone) && comment_names(comment, code);
    }
    text_free(&text);
    return found;
}

bool diagnostics_ignored(const struct translation *t, const char *file, int line, const char *code) {
    return line > 0 &&
           (line_ignores(t, file, line, false, code) || line_ignores(t, file, line - 1, true, code));
}

/* ---- Warnings. */

#define WARNING_CODE "SM026" /* of smelt check */

void diagnostics_warn(const struct translation *t, const char *messages, struct text *out) {
    for (const char *at = messages; *at;) {
        size_t length = strcspn(at, "\n");
        struct message m;
        if (parse(at, length, &m) && strcmp(m.kind, "warning") == 0 && !is_ours(m.file) &&
            !strstr(m.file, "<at ") && !diagnostics_ignored(t, m.file, m.line, WARNING_CODE))
            add_placed("warning", t, &m, out);
        at += length + (at[length] == '\n');
    }
}

void diagnostics_add_warning(const struct translation *t, const char *file, int line, int column,
                             const char *message, struct text *out) {
    struct text storage = {0};
    size_t length = 0;
    const char *text = line_of(user_text(t, file, &storage), line, &length);
    if (!diagnostics_ignored(t, file, line, WARNING_CODE))
        add_kind("warning", file, line, column, message, strlen(message), text, length, out);
    text_free(&storage);
}

/* For each unknown code in the comment of a line, which begins at `line` and ends with `length`. */
static void warn_of_codes(const struct translation *t, const char *file, int number, const char *line,
                          size_t length, struct text *out) {
    struct text copy = {0};
    text_append(&copy, line, length);
    const char *whole = text_string(&copy), *comment = strstr(whole, "//");
    const char *at = comment ? requested_codes(comment) : NULL, *word;
    size_t size;
    for (bool first = true; at && (word = next_code(&at, first, &size)); first = false) {
        char message[200];
        if (is_code(word, size)) continue;
        snprintf(message, sizeof message,
                 "'%.*s' is not the code of a finding: this comment does not ignore it",
                 (int)(size < 100 ? size : 100), word);
        diagnostics_add_warning(t, file, number, (int)(word - whole) + 1, message, out);
    }
    text_free(&copy);
}

void diagnostics_warn_of_codes(const struct translation *t, struct text *out) {
    for (int i = 0; i < TRANSLATION_MAX_TEXTS; i++) {
        const char *line = t->texts[i].text;
        for (int number = 1; line && *line; number++) {
            size_t length = strcspn(line, "\n");
            warn_of_codes(t, t->texts[i].name, number, line, length, out);
            line += length + (line[length] == '\n');
        }
    }
}

int diagnostics_column(const struct translation *t, const char *file, int line, int column) {
    struct message place = {.line = line, .column = column};
    struct text storage = {0};
    size_t length = 0;
    snprintf(place.file, sizeof place.file, "%s", file);
    const char *user = line_of(user_text(t, file, &storage), line, &length);
    int result = user && column > 0 ? column_of_message(t, &place, user, length) : 0;
    text_free(&storage);
    return result;
}

bool diagnostics_line(const struct translation *t, const char *file, int line, struct text *out) {
    struct text storage = {0};
    size_t length = 0;
    const char *user = line > 0 ? line_of(user_text(t, file, &storage), line, &length) : NULL;
    if (user) text_append(out, user, length);
    text_free(&storage);
    return user != NULL;
}
