#include "base/error.h"
#include "base/printable.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Grows with the longest message of the thread; freed when the thread ends. */
struct message {
    size_t capacity;
    char text[];
};

static pthread_key_t message_key;
static pthread_once_t message_once = PTHREAD_ONCE_INIT;

static void make_key(void) {
    (void)pthread_key_create(&message_key, free);
}

static struct message *message_reserve(size_t capacity) {
    pthread_once(&message_once, make_key);
    struct message *message = pthread_getspecific(message_key);
    if (message && message->capacity >= capacity) return message;
    struct message *grown = realloc(message, sizeof *grown + capacity);
    if (!grown) return message;
    if (!message) grown->text[0] = 0;
    grown->capacity = capacity;
    pthread_setspecific(message_key, grown);
    return grown;
}

const char *smelt_error(void) {
    pthread_once(&message_once, make_key);
    struct message *message = pthread_getspecific(message_key);
    return message ? message->text : "";
}

/* Names and lines of whoever wrote the input come along: the message is safe to print. */
static void make_printable(void) {
    struct text printable = {0};
    text_add_printable(&printable, smelt_error());
    struct message *message = printable.failed ? NULL : message_reserve(printable.length + 1);
    if (message && message->capacity > printable.length)
        memcpy(message->text, text_string(&printable), printable.length + 1);
    text_free(&printable);
}

static bool is_plain(const char *text) {
    for (; *text; text++)
        if ((*text < ' ' && *text != '\n') || *text == 0x7f) return false;
    return true;
}

static void set_message(const char *format, va_list arguments, const char *tail) {
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    size_t tail_length = tail ? strlen(tail) + 2 : 0;
    char *kept = tail ? strdup(tail) : NULL;
    size_t needed = (length < 0 ? 0 : (size_t)length) + tail_length + 1;
    struct message *message = message_reserve(needed < 256 ? 256 : needed);
    if (message) {
        int written = vsnprintf(message->text, message->capacity, format, again);
        if (kept && written >= 0 && (size_t)written < message->capacity)
            snprintf(message->text + written, message->capacity - (size_t)written, ": %s", kept);
        if (!is_plain(message->text)) make_printable();
    }
    free(kept);
    va_end(again);
}

void error_record(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    set_message(format, arguments, NULL);
    va_end(arguments);
}

void error_record_within(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    set_message(format, arguments, smelt_error());
    va_end(arguments);
}

smelt_status fail_out_of_memory(size_t bytes) {
    return fail(SMELT_ERROR_OUT_OF_MEMORY, "out of memory: %zu bytes could not be allocated", bytes);
}

const char *smelt_status_name(smelt_status status) {
    switch (status) {
#define X(code, name, meaning) \
    case SMELT_##name:         \
        return "SMELT_" #name;
        SMELT_STATUS_TABLE(X)
#undef X
    }
    return "SMELT_UNKNOWN";
}

const char *smelt_status_meaning(smelt_status status) {
    switch (status) {
#define X(code, name, meaning) \
    case SMELT_##name:         \
        return meaning;
        SMELT_STATUS_TABLE(X)
#undef X
    }
    return "not a status of this version";
}

const char *smelt_version(void) {
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
    return TEXT(SMELT_VERSION_MAJOR) "." TEXT(SMELT_VERSION_MINOR) "." TEXT(SMELT_VERSION_PATCH);
}

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static smelt_log_callback *log_callback;
static void *log_context;

void smelt_set_log(smelt_log_callback *callback, void *context) {
    pthread_mutex_lock(&log_lock);
    log_callback = callback;
    log_context = context;
    pthread_mutex_unlock(&log_lock);
}

void log_line(smelt_log_level level, const char *format, ...) {
    char line[1024];
    struct text printable = {0};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (!is_plain(line)) text_add_printable(&printable, line);
    if (printable.length) snprintf(line, sizeof line, "%s", printable.data);
    text_free(&printable);
    pthread_mutex_lock(&log_lock);
    smelt_log_callback *callback = log_callback;
    void *context = log_context;
    pthread_mutex_unlock(&log_lock);
    if (callback)
        callback(level, line, context);
    else if (level == SMELT_LOG_WARNING)
        fprintf(stderr, "smelt: warning: %s\n", line);
}

static smelt_kernel_log_callback *kernel_log_callback;
static void *kernel_log_context;

void smelt_set_kernel_log(smelt_kernel_log_callback *callback, void *context) {
    pthread_mutex_lock(&log_lock);
    kernel_log_callback = callback;
    kernel_log_context = context;
    pthread_mutex_unlock(&log_lock);
}

void log_kernel_line(const smelt_kernel_line *line) {
    pthread_mutex_lock(&log_lock);
    smelt_kernel_log_callback *callback = kernel_log_callback;
    void *context = kernel_log_context;
    pthread_mutex_unlock(&log_lock);
    if (callback) {
        callback(line, context);
        return;
    }
    struct text printable = {0};
    text_add_printable(&printable, line->text);
    fprintf(stderr, "kernel '%s' thread (%u, %u, %u): %s\n", line->kernel, line->thread[0], line->thread[1],
            line->thread[2], text_string(&printable));
    text_free(&printable);
}
