/* smelt_progress_on_terminal: one line, rewritten from its beginning. */
#include "base/printable.h"
#include "base/setting.h"
#include "base/text.h"
#include "smelt/smelt.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define ERASE_LINE "\r\033[K"
#define MOST_NAME 40
#define USUAL_COLUMNS 80

static bool is_wanted(void) {
    static struct setting setting = {"SMELT_PROGRESS", {"1", "0"}, ATOMIC_FLAG_INIT};
    const char *terminal = getenv("TERM");
    return isatty(STDERR_FILENO) && setting_choice(&setting) == 0 && terminal &&
           strcmp(terminal, "dumb") != 0;
}

/* A line that reached the last column would wrap. */
static size_t columns(void) {
    struct winsize size;
    bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return (known ? size.ws_col : (size_t)USUAL_COLUMNS) - 1;
}

/* How much of the text is within `most` bytes, in whole characters. */
static size_t part_of(const char *text, size_t most) {
    size_t length = strlen(text);
    if (length <= most) return length;
    for (length = most; length && (text[length] & 0xc0) == 0x80;) length--;
    return length;
}

static void add_name(const char *name, struct text *line) {
    struct text printable = {0};
    text_add_printable(&printable, name);
    const char *text = text_string(&printable);
    size_t length = part_of(text, MOST_NAME);
    text_addf(line, " '%.*s%s'", (int)length, text, text[length] ? "…" : "");
    text_free(&printable);
}

void smelt_progress_on_terminal(const smelt_progress *progress, void *context) {
    struct text line = {0};
    (void)context;
    if (!progress || !is_wanted()) return;
    if (progress->stage) {
        text_add(&line, "compiling");
        if (*progress->kernel) add_name(progress->kernel, &line);
        text_addf(&line, ": %s, %.0f s", progress->stage, progress->seconds);
        if (progress->others) text_addf(&line, " (and %d more)", progress->others);
    }
    struct text out = {0};
    text_addf(&out, ERASE_LINE "%.*s", (int)part_of(text_string(&line), columns()), text_string(&line));
    (void)!write(STDERR_FILENO, text_string(&out), out.length);
    text_free(&out);
    text_free(&line);
}
