#include "frontend/translation.h"
#include "base/clock.h"
#include "frontend/cache.h"
#include "frontend/clang.h"
#include "frontend/diagnostic.h"
#include "frontend/include.h"
#include "frontend/installed.h"
#include "frontend/once.h"
#include "frontend/overlay.h"
#include "frontend/prelude.h"
#include "source/balance.h"
#include "source/rewrite.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* ---- Preprocessing, remembered: the entry lists the files it read, and is good while they are unchanged.
 * Layout: one line a file "size seconds nanoseconds path", an empty line, the text. */

/* clang: NULL for that of the same build (installed.h). */
static struct hash preprocess_key(const struct translation_request *request, const struct clang *clang) {
    struct hasher *hasher = hasher_create();
    hasher_add(hasher, request->text, request->length);
    for (const char *const *p = request->include_paths; p && *p; p++) hasher_add_string(hasher, *p);
    for (const char *const *m = request->macros; m && *m; m++) {
        hasher_add_string(hasher, "macro");
        hasher_add_string(hasher, *m);
    }
    for (int i = 0; i < TRANSLATION_MAX_TEXTS; i++) hasher_add_string(hasher, request->texts[i].name);
    hasher_add_string(hasher, "includes from its folders only");
    hasher_add_integer(hasher, request->math);
    hasher_add_integer(hasher, request->metal_version);
    hasher_add_string(hasher, prelude_macros);
    for (int i = 0; i < PRELUDE_HEADERS; i++) hasher_add_string(hasher, prelude_headers[i]);
    if (clang) hasher_add(hasher, &clang->identity, sizeof clang->identity);
    return hasher_finish(hasher);
}

static bool unchanged(const char *line, size_t length) {
    long long size, seconds, nanoseconds;
    int used = 0;
    char text[4400];
    if (length >= sizeof text) return false;
    memcpy(text, line, length);
    text[length] = 0;
    if (sscanf(text, "%lld %lld %lld %n", &size, &seconds, &nanoseconds, &used) != 3 || !used) return false;
    struct stat status;
    return stat(text + used, &status) == 0 && status.st_size == size && status.st_mtim.tv_sec == seconds &&
           status.st_mtim.tv_nsec == nanoseconds;
}

/* False if a file of its list has changed. */
static bool take_entry(const struct text *entry, struct text *source) {
    const char *at = text_string(entry);
    bool good = true;
    while (good && *at && *at != '\n') {
        size_t length = strcspn(at, "\n");
        good = unchanged(at, length);
        at += length + (at[length] == '\n');
    }
    good = good && *at == '\n';
    if (good) text_append(source, at + 1, entry->length - (size_t)(at + 1 - entry->data));
    return good;
}

static bool recall(struct hash key, struct text *source) {
    struct text entry = {0};
    if (!cache_read(key, "pre", &entry)) return false;
    bool good = take_entry(&entry, source);
    text_free(&entry);
    return good;
}

static bool recall_installed(const struct translation_request *request, struct text *source) {
    struct text entry = {0};
    if (!installed_read(preprocess_key(request, NULL), "pre", &entry)) return false;
    bool good = take_entry(&entry, source);
    text_free(&entry);
    return good;
}

static bool later(struct timespec a, struct timespec b) {
    return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec >= b.tv_nsec;
}

/* Adds a line for the file or folder to the list; false if it changed since `start`: what clang read is not
 * known. */
static bool record(const char *path, struct timespec start, struct text *files) {
    char item[4400];
    struct stat status;
    if (stat(path, &status) != 0) return true;
    if (later(status.st_mtim, start)) return false;
    int length = snprintf(item, sizeof item, "%lld %lld %lld %s\n", (long long)status.st_size,
                          (long long)status.st_mtim.tv_sec, (long long)status.st_mtim.tv_nsec, path);
    if (length < (int)sizeof item && !strstr(text_string(files), item))
        text_append(files, item, (size_t)length);
    return true;
}

static bool is_own_text(const struct translation_request *request, const char *path) {
    for (int i = 0; i < TRANSLATION_MAX_TEXTS; i++)
        if (request->texts[i].name && strcmp(request->texts[i].name, path) == 0) return true;
    return false;
}

/* The files a preprocessed text names in its line markers, those with a place on disk (its own texts are part
 * of the key); where there are some, or were looked for, the folders searched too: a new file in one may hide
 * an old one. */
static void remember(struct hash key, const struct translation_request *request,
                     const char *const *search_paths, struct timespec start, const struct text *source) {
    struct text files = {0};
    bool known = true;
    const char *at = text_string(source), *end = at + source->length;
    for (; at < end; at += strcspn(at, "\n") + 1) {
        int line, used = 0;
        if (*at != '#' || sscanf(at, "# %d \"%n", &line, &used) != 1 || !used) continue;
        size_t length = strcspn(at + used, "\"\n");
        char path[4200];
        if (!length || length >= sizeof path || at[used] == '<' || at[used + 1] == '<') continue;
        memcpy(path, at + used, length);
        path[length] = 0;
        if (!is_own_text(request, path)) known &= record(path, start, &files);
    }
    if (files.length || strstr(request->text, "__has_include"))
        for (const char *const *p = search_paths; *p; p++) known &= record(*p, start, &files);
    text_add(&files, "\n");
    struct bytes pieces[2] = {{files.data, files.length}, {source->data, source->length}};
    if (known && !files.failed && !source->failed) {
        cache_write(key, "pre", pieces, 2);
        installed_write(preprocess_key(request, NULL), "pre", pieces, 2);
    }
    text_free(&files);
}

static void define_macros(const char *const *macros, struct text *whole) {
    for (; macros && *macros; macros++) {
        size_t name = strcspn(*macros, "=");
        const char *value = (*macros)[name] ? *macros + name + 1 : "1";
        text_addf(whole, "#define %.*s %s\n", (int)name, *macros, value);
    }
}

static smelt_status run_preprocessor(const struct translation_request *request, const struct clang *clang,
                                     struct translation *out) {
    struct text whole = {0}, messages = {0}, overlay = {0};
    TRY(includes_check(request->texts[0].name ? request->texts[0].name : "source.metal", request->text,
                       out->search_paths));
    TRY(overlay_create(out->search_paths, &overlay));
    text_addf(&whole, "#define __METAL_VERSION__ %d\n", out->metal_version);
    text_add(&whole, prelude_macros);
    define_macros(request->macros, &whole);
    text_addf(&whole, "#line 1 \"%s\"\n", request->texts[0].name ? request->texts[0].name : "source.metal");
    text_append(&whole, request->text, request->length);
    struct clang_request clang_request = {.action = CLANG_PREPROCESS,
                                          .math = request->math,
                                          .include_paths = out->search_paths,
                                          .header_overlay = text_string(&overlay),
                                          .header_folder = OVERLAY_HEADER_FOLDER,
                                          .source_path = OVERLAY_HEADER_FOLDER "/" OVERLAY_SOURCE_NAME,
                                          .text = text_string(&whole),
                                          .length = whole.length};
    bool ok = false;
    smelt_status status = whole.failed ? fail_out_of_memory(request->length)
                                       : clang_run(clang, &clang_request, &out->source, &messages, &ok);
    if (status == SMELT_OK && !ok) {
        struct text described = {0};
        diagnostics_describe(out, text_string(&messages), &described);
        status = fail(SMELT_ERROR_COMPILE, "%s", text_string(&described));
        text_free(&described);
    }
    text_free(&overlay);
    text_free(&whole);
    text_free(&messages);
    return status;
}

/* The caller has waited for others who did it. */
static smelt_status preprocess_now(const struct translation_request *request, const struct clang *clang,
                                   struct hash key, struct translation *out) {
    if (recall(key, &out->source)) return SMELT_OK;
    struct timespec start;
    clock_gettime(CLOCK_REALTIME_COARSE, &start);
    TRY(run_preprocessor(request, clang, out));
    remember(key, request, out->search_paths, start, &out->source);
    return SMELT_OK;
}

static smelt_status preprocess(const struct translation_request *request, struct translation *out) {
    struct clang clang;
    if (recall_installed(request, &out->source)) return SMELT_OK;
    TRY(clang_find_or_recall(&clang));
    if (recall(preprocess_key(request, &clang), &out->source)) return SMELT_OK;
    TRY(clang_find(&clang));
    struct hash key = preprocess_key(request, &clang);
    struct once *mine;
    TRY(once_begin(once_key("preprocess", key), &mine, &out->source));
    if (!mine) return SMELT_OK;
    smelt_status status = preprocess_now(request, &clang, key, out);
    struct bytes piece = {out->source.data, out->source.length};
    once_end(mine, status, &piece);
    return status;
}

/* Macros of prelude/smelt_macros.h whose replacement the rewriter must see. */
static const char *const rewritten_macros[] = {"instantiate_kernel", "METAL_CONST", "MLX_MTL_CONST"};

/* A # can be written %:, with an escaped line end in between, too; and a carriage return ends a line. */
static bool may_hide_directives(const char *text) {
    for (const char *at = text; (at = strpbrk(at, "%\r")); at++)
        if (*at == '%' ? at[1] == ':' || at[1] == '\\' : at[1] != '\n') return true;
    return false;
}

/* Words of sources that use Metal 4's tensors, and names of its headers: in includes, and in the line markers
 * that the preprocessor makes of them. */
static const char *const tensor_words[] = {
    "mpp",      "tensor_ops",         "tensor_inline",       "tensor_handle",
    "dextents", "cooperative_tensor", "packed_numeric_type", NULL};
static const char *const tensor_headers[] = {"/metal_tensor\"",
                                             "metal_tensor>",
                                             "/metal_packed_numeric\"",
                                             "metal_packed_numeric>",
                                             "metal_cooperative_tensor",
                                             "MetalPerformancePrimitives/",
                                             NULL};

static bool names_tensor_header(const struct tokens *tokens, const struct token *token) {
    for (const char *const *h = tensor_headers; *h; h++)
        if (memmem(tokens->text + token->start, token->length, *h, strlen(*h))) return true;
    return false;
}

/* Formats of packed numbers, which metal_stdlib declares in Metal 4. */
static bool names_packed_format(const struct tokens *tokens, uint32_t i) {
    static const char *const formats[] = {
        "int4b_format",          "uint4b_format",          "int2b_format",
        "uint2b_format",         "metal_fp4_e2m1_format",  "metal_fp8_e4m3_format",
        "metal_fp8_e5m2_format", "metal_fp8_ue8m0_format", NULL};
    static const char end[] = "_format";
    const struct token *token = &tokens->items[i];
    const char *behind = tokens->text + token->start + token->length;
    return token->kind == TOKEN_IDENTIFIER && token->length > sizeof end &&
           memcmp(behind - (sizeof end - 1), end, sizeof end - 1) == 0 && token_is_one_of(tokens, i, formats);
}

static bool uses_tensors(const struct tokens *tokens) {
    for (const char *const *w = tensor_words; *w; w++)
        if (tokens_contain(tokens, *w)) return true;
    for (uint32_t i = 0; i < tokens->count; i++)
        if (names_packed_format(tokens, i) ||
            (tokens->items[i].kind == TOKEN_DIRECTIVE && names_tensor_header(tokens, &tokens->items[i])))
            return true;
    return false;
}

/* Directives that clang must see, or a macro for text that the rewriter must see. */
static smelt_status needs_preprocessor(const struct translation_request *request, struct translation *out,
                                       bool *needed) {
    struct tokens tokens;
    TRY(tokens_read(request->text, request->length, &tokens));
    *needed = !directives_are_plain(&tokens) || may_hide_directives(request->text) ||
              (request->macros && request->macros[0]);
    int usual = uses_tensors(&tokens) ? METAL_VERSION_TENSORS : METAL_VERSION_USUAL;
    out->metal_version = request->metal_version ? request->metal_version : usual;
    /* The precompiled prelude has the usual version's number. */
    bool other = out->metal_version != usual;
    *needed |= other && tokens_contain(&tokens, "__METAL_VERSION__");
    for (size_t i = 0; i < sizeof rewritten_macros / sizeof *rewritten_macros; i++)
        *needed |= tokens_contain(&tokens, rewritten_macros[i]);
    tokens_free(&tokens);
    return SMELT_OK;
}

/* #include "…" searches the folder of its own file first (the texts are files when their names are paths),
 * then in the folders given. */
static void find_search_paths(const struct translation_request *request, struct translation *out) {
    int given = 0, count = 0;
    while (request->include_paths && request->include_paths[given]) given++;
    out->search_paths =
        arena_alloc(&out->arena, ((size_t)given + TRANSLATION_MAX_TEXTS + 1) * sizeof *out->search_paths);
    if (!out->search_paths) return;
    for (int i = 0; i < TRANSLATION_MAX_TEXTS; i++) {
        const char *name = request->texts[i].name, *slash = name ? strrchr(name, '/') : NULL;
        if (slash)
            out->search_paths[count++] = arena_copy(&out->arena, name, (size_t)(slash - name) + 1);
        else if (name)
            out->search_paths[count++] = "./";
    }
    for (int i = 0; i < given; i++)
        out->search_paths[count++] =
            arena_copy(&out->arena, request->include_paths[i], strlen(request->include_paths[i]));
}

static smelt_status check_balance(const struct translation *translation) {
    struct imbalance found;
    if (!imbalance_find(&translation->program.input, &found)) return SMELT_OK;
    struct text described = {0};
    diagnostics_add(translation, found.position, found.message, &described);
    smelt_status status = fail(SMELT_ERROR_COMPILE, "%s", text_string(&described));
    text_free(&described);
    return status;
}

smelt_status metal_version_check(const char *what, int version) {
    static const int versions[] = {0, 100, 110, 120, 200, 210, 220, 230, 240, 300, 310, 320, 400, 410};
    for (size_t v = 0; v < sizeof versions / sizeof *versions; v++)
        if (version == versions[v]) return SMELT_OK;
    return fail(
        SMELT_ERROR_INVALID_ARGUMENT,
        "%s: metal_version is %d, expected a value of __METAL_VERSION__: 100, 110, 120, "
        "200, 210, 220, 230, 240, 300, 310, 320, 400 or 410 (0: 320, or 410 for sources with tensors)",
        what, version);
}

/* "NAME", "NAME=TEXT" or "TIMES(a, b)=TEXT" of one line; a backslash at its end would join the next one. */
static bool is_macro(const char *text) {
    const char *end = text;
    if (!isalpha((unsigned char)*end) && *end != '_') return false;
    while (isalnum((unsigned char)*end) || *end == '_') end++;
    if (*end == '(') {
        do end++;
        while (isalnum((unsigned char)*end) || (*end && strchr("_,. ", *end)));
        if (*end++ != ')') return false;
    }
    return (!*end || *end == '=') && !strpbrk(end, "\n\r") && text[strlen(text) - 1] != '\\';
}

/* The macro that metal_version sets. */
static bool is_version(const char *macro) {
    static const char name[] = "__METAL_VERSION__";
    return strcspn(macro, "(=") == sizeof name - 1 && memcmp(macro, name, sizeof name - 1) == 0;
}

smelt_status translation_check_macros(const char *what, const char *const *macros) {
    for (; macros && *macros; macros++) {
        if (!is_macro(*macros))
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        "%s: macro '%s' is invalid; expected NAME or NAME=TEXT, in one line", what, *macros);
        if (is_version(*macros))
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        "%s: macro '%s' is invalid; the language version (metal_version, or --metal-version) "
                        "defines __METAL_VERSION__",
                        what, *macros);
    }
    return SMELT_OK;
}

smelt_status translation_create(const struct translation_request *given, struct translation *translation) {
    struct translation_request without_mark = *given, *request = &without_mark;
    int64_t start = clock_nanoseconds();
    request->text = tokens_behind_mark(given->text);
    request->length -= (size_t)(request->text - given->text);
    struct translation out = {.prelude = request->prelude, .math = request->math};
    find_search_paths(request, &out);
    for (int i = 0; i < TRANSLATION_MAX_TEXTS; i++) {
        const struct named_text *text = &request->texts[i];
        if (!text->name) continue;
        out.texts[i].name = arena_copy(&out.arena, text->name, strlen(text->name));
        const char *behind = tokens_behind_mark(text->text);
        out.texts[i].text = arena_copy(&out.arena, behind, strlen(behind));
    }
    bool needed = false;
    smelt_status status =
        out.arena.failed ? fail_out_of_memory(request->length) : needs_preprocessor(request, &out, &needed);
    if (status == SMELT_OK) {
        if (needed) {
            status = preprocess(request, &out);
        } else {
            if (request->texts[0].name && !strstr(request->text, "#line"))
                text_addf(&out.source, "#line 1 \"%s\"\n", request->texts[0].name);
            text_append(&out.source, request->text, request->length);
            if (out.source.failed) status = fail_out_of_memory(request->length);
        }
    }
    if (status == SMELT_OK)
        status = program_create(text_string(&out.source), out.source.length, &out.program);
    if (status == SMELT_OK) {
        bool mlx = prelude_has_mlx(out.prelude);
        if (uses_tensors(&out.program.input))
            out.prelude = mlx ? PRELUDE_MLX_TENSORS : PRELUDE_METAL_TENSORS;
        else if (out.program.objects)
            out.prelude = mlx ? PRELUDE_MLX_OBJECTS : PRELUDE_METAL_OBJECTS;
        status = check_balance(&out);
        if (status != SMELT_OK) program_free(&out.program);
    }
    if (status != SMELT_OK) {
        text_free(&out.source);
        arena_free(&out.arena);
        return status;
    }
    out.nanoseconds = clock_nanoseconds() - start;
    *translation = out;
    return SMELT_OK;
}

void translation_free(struct translation *translation) {
    program_free(&translation->program);
    text_free(&translation->source);
    arena_free(&translation->arena);
}

const struct entry *translation_entry(const struct translation *translation, const char *host_name) {
    for (int e = 0; e < translation->program.entry_count; e++)
        if (strcmp(translation->program.entries[e].host_name, host_name) == 0)
            return &translation->program.entries[e];
    return NULL;
}
