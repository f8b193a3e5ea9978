#include "frontend/include.h"
#include "base/file.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Sources include some dozen files; larger numbers are left to clang. */
#define MAX_FILES 1000

struct walk {
    const char *const *folders;
    struct text seen; /* paths, each between line ends */
    int count;
};

static const char *skip_blanks(const char *at) {
    return at + strspn(at, " \t");
}

/* The name in `# include "name"` or <name>, its length, and whether the file's own folder is searched first.
 */
static const char *included_name(const char *line, size_t *length, bool *own_folder) {
    static const char *const words[] = {"include_next", "include", "import", "embed"};
    line = skip_blanks(line);
    if (*line != '#') return NULL;
    line = skip_blanks(line + 1);
    for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
        size_t n = strlen(words[w]);
        if (strncmp(line, words[w], n) != 0) continue;
        const char *open = skip_blanks(line + n);
        if (*open != '"' && *open != '<') return NULL;
        *own_folder = *open == '"';
        *length = strcspn(open + 1, *own_folder ? "\"\n" : ">\n");
        return open[1 + *length] == '\n' || !open[1 + *length] ? NULL : open + 1;
    }
    return NULL;
}

/* The path under which the file is found, in `path`; false: nowhere. */
static bool find(const struct walk *walk, const char *from, const char *name, size_t length, bool own_folder,
                 char path[4352], struct stat *status) {
    const char *slash = from ? strrchr(from, '/') : NULL;
    if (own_folder && slash &&
        snprintf(path, 4352, "%.*s/%.*s", (int)(slash - from), from, (int)length, name) < 4352 &&
        stat(path, status) == 0)
        return true;
    for (const char *const *f = walk->folders; f && *f; f++)
        if (snprintf(path, 4352, "%s/%.*s", **f ? *f : ".", (int)length, name) < 4352 &&
            stat(path, status) == 0)
            return true;
    return false;
}

static bool is_new(struct walk *walk, const char *path) {
    struct text entry = {0};
    text_addf(&entry, "\n%s\n", path);
    bool fresh = !entry.failed && !strstr(text_string(&walk->seen), entry.data) && walk->count++ < MAX_FILES;
    if (fresh) text_append(&walk->seen, entry.data, entry.length);
    text_free(&entry);
    return fresh;
}

/* `from`: the file's path; NULL: it has none. */
static smelt_status check_text(struct walk *walk, const char *label, const char *from, const char *text) {
    smelt_status status = SMELT_OK;
    int number = 1;
    for (const char *line = text; *line && status == SMELT_OK; number++) {
        char found[4352];
        size_t length;
        bool own_folder;
        struct stat there;
        const char *name = included_name(line, &length, &own_folder);
        if (name && find(walk, from, name, length, own_folder, found, &there)) {
            struct text contents = {0};
            if (S_ISFIFO(there.st_mode) || S_ISSOCK(there.st_mode))
                status =
                    fail(SMELT_ERROR_COMPILE, "%s:%d: error: '%.*s' is a %s, expected a regular file", label,
                         number, (int)length, name, S_ISFIFO(there.st_mode) ? "named pipe" : "socket");
            else if (S_ISREG(there.st_mode) && is_new(walk, found) && file_read(found, &contents) == SMELT_OK)
                status = check_text(walk, found, found, text_string(&contents));
            text_free(&contents);
        }
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return status;
}

smelt_status includes_check(const char *label, const char *text, const char *const *folders) {
    struct walk walk = {.folders = folders};
    smelt_status status = strstr(text, "#") ? check_text(&walk, label, NULL, text) : SMELT_OK;
    text_free(&walk.seen);
    return status;
}
