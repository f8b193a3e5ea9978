#include "findings.h"
#include "json.h"
#include "values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The list. */

static bool is_same_text(const char *a, const char *b) {
    return strcmp(a ? a : "", b ? b : "") == 0;
}

bool findings_are_same(const smelt_finding *a, const smelt_finding *b) {
    return is_same_text(a->code, b->code) && is_same_text(a->file, b->file) && a->line == b->line &&
           a->column == b->column && is_same_text(a->argument, b->argument) &&
           a->other_line == b->other_line && a->other_column == b->other_column;
}

void findings_add_one(struct findings *findings, const smelt_finding *finding) {
    for (int i = 0; i < findings->count; i++) {
        if (!findings_are_same(&findings->list[i], finding)) continue;
        findings->list[i].count += finding->count;
        return;
    }
    smelt_finding *grown = realloc(findings->list, ((size_t)findings->count + 1) * sizeof *grown);
    findings->out_of_memory |= !grown;
    if (!grown) return;
    findings->list = grown;
    smelt_finding *f = &grown[findings->count];
    *f = *finding;
    const char **texts[] = {&f->code, &f->kind, &f->message, &f->file, &f->argument, &f->other_file};
    bool copied = true;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        *texts[i] = strdup(*texts[i] ? *texts[i] : "");
        copied &= *texts[i] != NULL;
    }
    findings->out_of_memory |= !copied;
    if (copied) findings->count++;
}

void findings_collect(struct findings *findings) {
    smelt_finding finding;
    for (int i = 0; smelt_findings_get(i, &finding); i++) findings_add_one(findings, &finding);
}

bool findings_is_advice(const smelt_finding *finding) {
    return strcmp(finding->kind, "advice") == 0 || strcmp(finding->kind, "coverage") == 0;
}

bool findings_fail(const struct findings *findings) {
    for (int i = 0; i < findings->count; i++)
        if (!findings_is_advice(&findings->list[i])) return true;
    return false;
}

void findings_clear(struct findings *findings) {
    for (int i = 0; i < findings->count; i++) {
        const smelt_finding *f = &findings->list[i];
        const char *texts[] = {f->code, f->kind, f->message, f->file, f->argument, f->other_file};
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) free((char *)texts[k]);
    }
    free(findings->list);
    *findings = (struct findings){0};
}

/* ---- For people. */

/* The line of the source that was given; NULL: another file's, or there is none. */
static const char *source_line(const struct options *o, const char *file, int line) {
    const char *at = o->package_size || strcmp(file, o->source_label) != 0 ? NULL : o->source;
    for (int i = 1; at && i < line; i++) {
        at = strchr(at, '\n');
        at = at ? at + 1 : NULL;
    }
    return line > 0 ? at : NULL;
}

/* With a caret under the column, if it is known. */
static void print_source_line(const struct options *o, const char *file, int line, int column) {
    const char *text = source_line(o, file, line);
    if (!text) return;
    int length = (int)strcspn(text, "\r\n");
    printf("%6d | %.*s\n", line, length, text);
    if (column <= 0 || column > length) return;
    printf("       | ");
    for (int i = 0; i < column - 1; i++) putchar(text[i] == '\t' ? '\t' : ' ');
    puts("^");
}

static void print_finding(const struct options *o, const smelt_finding *f) {
    if (f->line && f->column)
        printf("%s:%d:%d: ", f->file, f->line, f->column);
    else if (f->line)
        printf("%s:%d: ", f->file, f->line);
    printf("%s (%s): %s", f->kind, f->code, f->message);
    if (f->count > 1) printf(" (%llu times)", (unsigned long long)f->count);
    putchar('\n');
    print_source_line(o, f->file, f->line, f->column);
    if (f->other_line && (f->other_line != f->line || strcmp(f->other_file, f->file) != 0))
        print_source_line(o, f->other_file, f->other_line, f->other_column);
}

static void print_texts(const struct findings *findings, const struct options *o) {
    for (int i = 0; i < findings->count; i++) print_finding(o, &findings->list[i]);
    printf("%d finding%s\n", findings->count, findings->count == 1 ? "" : "s");
}

/* ---- JSON. */

static void print_text(const char *name, const char *text) {
    printf(", \"%s\": ", name);
    json_print_string(stdout, text);
}

static void print_position(const char *name, const uint32_t position[3]) {
    printf(", \"%s\": [%u, %u, %u]", name, position[0], position[1], position[2]);
}

/* Most advice, and findings after the run, name no thread. */
static bool has_thread(const smelt_finding *f) {
    static const char *const others[] = {"SM006", "SM013", "SM020", "SM021", "SM022",
                                         "SM023", "SM024", "SM026", "SM027"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(f->code, others[i]) == 0) return false;
    return true;
}

static void print_finding_json(const smelt_finding *f) {
    fputs("{\"code\": ", stdout);
    json_print_string(stdout, f->code);
    print_text("kind", f->kind);
    print_text("message", f->message);
    print_text("file", f->file);
    printf(", \"line\": %d, \"column\": %d", f->line, f->column);
    print_text("argument", f->argument);
    if (f->has_index)
        printf(", \"index\": %lld", (long long)f->index);
    else
        fputs(", \"index\": null", stdout);
    fputs(", \"threads\": [", stdout);
    if (has_thread(f)) {
        printf("{\"thread\": [%u, %u, %u]", f->thread[0], f->thread[1], f->thread[2]);
        print_position("threadgroup", f->threadgroup);
        putchar('}');
    }
    bool other = f->other_line > 0;
    if (other) {
        printf(", {\"thread\": [%u, %u, %u]", f->other_thread[0], f->other_thread[1], f->other_thread[2]);
        print_position("threadgroup", f->other_threadgroup);
        putchar('}');
    }
    fputs("], \"other\": ", stdout);
    if (other) {
        fputs("{\"file\": ", stdout);
        json_print_string(stdout, f->other_file);
        printf(", \"line\": %d, \"column\": %d}", f->other_line, f->other_column);
    } else {
        fputs("null", stdout);
    }
    printf(", \"count\": %llu}", (unsigned long long)f->count);
}

static void print_json(const struct findings *findings, const struct options *o) {
    (void)o;
    putchar('[');
    for (int i = 0; i < findings->count; i++) {
        if (i) fputs(",\n ", stdout);
        print_finding_json(&findings->list[i]);
    }
    puts("]");
}

/* ---- SARIF 2.1.0: https://docs.oasis-open.org/sarif/sarif/v2.1.0/ */

static const char *path_of(const char *file) {
    return file[0] == '.' && file[1] == '/' ? file + 2 : file;
}

static void print_sarif_place(const char *file, int line, int column) {
    fputs("{\"physicalLocation\": {\"artifactLocation\": {\"uri\": ", stdout);
    json_print_string(stdout, path_of(file));
    printf("}, \"region\": {\"startLine\": %d", line);
    if (column > 0) printf(", \"startColumn\": %d", column);
    fputs("}}}", stdout);
}

static void print_sarif_result(const smelt_finding *f) {
    fputs("{\"ruleId\": ", stdout);
    json_print_string(stdout, f->code);
    printf(", \"level\": \"%s\", \"message\": {\"text\": ", findings_is_advice(f) ? "note" : "error");
    json_print_string(stdout, f->message);
    fputs("}, \"locations\": [", stdout);
    if (f->line) print_sarif_place(f->file, f->line, f->column);
    fputs("]", stdout);
    if (f->other_line) {
        fputs(", \"relatedLocations\": [", stdout);
        print_sarif_place(f->other_file, f->other_line, f->other_column);
        fputs("]", stdout);
    }
    printf(", \"occurrenceCount\": %llu}", (unsigned long long)(f->count ? f->count : 1));
}

static void print_sarif(const struct findings *findings, const struct options *o) {
    (void)o;
    fputs("{\"$schema\": \"https://json.schemastore.org/sarif-2.1.0.json\", \"version\": \"2.1.0\",\n"
          " \"runs\": [{\"tool\": {\"driver\": {\"name\": \"smelt check\", \"version\": ",
          stdout);
    json_print_string(stdout, smelt_version());
    fputs(", \"rules\": [", stdout);
    for (int i = 0, printed = 0; i < findings->count; i++) {
        bool seen = false;
        for (int k = 0; k < i; k++) seen |= strcmp(findings->list[k].code, findings->list[i].code) == 0;
        if (seen) continue;
        printf("%s{\"id\": ", printed++ ? ", " : "");
        json_print_string(stdout, findings->list[i].code);
        fputs(", \"name\": ", stdout);
        json_print_string(stdout, findings->list[i].kind);
        putchar('}');
    }
    fputs("]}},\n  \"results\": [", stdout);
    for (int i = 0; i < findings->count; i++) {
        if (i) fputs(",\n   ", stdout);
        print_sarif_result(&findings->list[i]);
    }
    puts("]}]}");
}

/* ---- Commands of GitHub's workflows: lines that annotate a pull request. */

/* `property`: of a property, in which colons and commas have a meaning, too. */
static void print_escaped(const char *text, bool property) {
    for (; *text; text++) {
        bool escape =
            *text == '%' || *text == '\r' || *text == '\n' || (property && (*text == ':' || *text == ','));
        if (escape)
            printf("%%%02X", (unsigned)(unsigned char)*text);
        else
            putchar(*text);
    }
}

static void print_github(const struct findings *findings, const struct options *o) {
    (void)o;
    for (int i = 0; i < findings->count; i++) {
        const smelt_finding *f = &findings->list[i];
        fputs(findings_is_advice(f) ? "::notice " : "::error ", stdout);
        if (f->line) {
            fputs("file=", stdout);
            print_escaped(path_of(f->file), true);
            printf(",line=%d,", f->line);
            if (f->column) printf("col=%d,", f->column);
        }
        printf("title=%s (%s)::", f->kind, f->code);
        print_escaped(f->message, false);
        putchar('\n');
    }
}

/* ---- Forms. */

static const struct {
    const char *name;
    void (*print)(const struct findings *findings, const struct options *options);
} forms[] = {{"text", print_texts}, {"json", print_json}, {"sarif", print_sarif}, {"github", print_github}};

bool findings_form_is_known(const char *form) {
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strcmp(forms[i].name, form) == 0) return true;
    return complain("--format is '%s', expected text, json, sarif or github", form);
}

void findings_print(const struct findings *findings, const char *form, const struct options *options) {
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strcmp(forms[i].name, form) == 0) forms[i].print(findings, options);
}
