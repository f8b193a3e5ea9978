#include "device/log.h"
#include "base/format.h"

#include <stdlib.h>
#include <string.h>

/* A call, with copies of its texts, whose memory may change. */
struct log_record {
    struct log_record *before;
    struct log_place place;
    uint32_t serial; /* of the record, to keep a thread's own in order */
    uint32_t word_count;
    uint64_t words[]; /* texts by offset into the bytes behind the words */
};

static char *texts_of(struct log_record *record) {
    return (char *)&record->words[record->word_count];
}

/* ---- Where the words of an argument are. */

static uint32_t argument_count(const uint64_t *words) {
    return (uint32_t)words[LOG_COUNT] & LOG_MOST_ARGUMENTS;
}

static uint32_t words_each(const uint64_t *words) {
    return words[LOG_COUNT] & LOG_FOUR_WORDS ? 4 : 1;
}

static uint64_t *argument_word(uint64_t *words, uint32_t argument, uint32_t word) {
    return &words[LOG_HEAD_WORDS + (1 + word) * argument_count(words) + argument];
}

static enum format_kind kind_of(const uint64_t *words, uint32_t argument) {
    return (enum format_kind)(words[LOG_HEAD_WORDS + argument] & 255);
}

/* Calls `each` for the address and the bytes of every text. */
static void for_each_text(uint64_t *words, void (*each)(uint64_t *address, uint64_t *bytes, void *context),
                          void *context) {
    for (int i = LOG_SUBSYSTEM; i < LOG_HEAD_WORDS; i += 2) each(&words[i], &words[i + 1], context);
    for (uint32_t a = 0; a < argument_count(words) && words_each(words) == 4; a++)
        if (kind_of(words, a) == FORMAT_TEXT)
            each(argument_word(words, a, 1), argument_word(words, a, 2), context);
}

/* ---- Recording. Runs on the kernel's stack. */

struct text_source {
    log_text_reader *read;
    void *context;
};

static void limit(uint64_t *address, uint64_t *bytes, void *context) {
    size_t *total = context;
    if (*bytes > LOG_LONGEST_TEXT) *bytes = LOG_LONGEST_TEXT;
    if (!*address) *bytes = 0;
    *total += *bytes + 1;
}

struct copy {
    const struct text_source *source;
    char *texts;
    size_t used;
};

/* The bytes of a text up to its zero; its address becomes its place among the copies. */
static void keep(uint64_t *address, uint64_t *bytes, void *context) {
    struct copy *copy = context;
    char *to = copy->texts + copy->used;
    const char *from = (const char *)(uintptr_t)*address;
    if (*bytes && copy->source->read) {
        *bytes = copy->source->read(copy->source->context, to, *address, *bytes);
    } else if (*bytes) {
        *bytes = strnlen(from, *bytes);
        memcpy(to, from, *bytes);
    }
    to[*bytes] = 0;
    *address = copy->used;
    copy->used += *bytes + 1;
}

/* NULL: no memory, or the words are not a log call's. */
static struct log_record *make_record(uint32_t count, const uint64_t *words,
                                      const struct text_source *source) {
    if (count < LOG_HEAD_WORDS) return NULL;
    uint32_t expected = LOG_HEAD_WORDS + argument_count(words) * (1 + words_each(words));
    if (count != expected) return NULL;
    uint64_t limited[LOG_MOST_WORDS];
    size_t bytes = 0;
    memcpy(limited, words, count * sizeof *words);
    for_each_text(limited, limit, &bytes);
    struct log_record *record = malloc(sizeof *record + count * sizeof *words + bytes);
    if (!record) return NULL;
    record->word_count = count;
    memcpy(record->words, limited, count * sizeof *words);
    struct copy copy = {source, texts_of(record), 0};
    for_each_text(record->words, keep, &copy);
    return record;
}

void launch_log_add(struct launch_log *log, const struct log_place *place, uint32_t count,
                    const uint64_t *words, log_text_reader *read, void *context) {
    /* Looked at before the lock: an endless loop only counts. */
    bool full = __atomic_load_n(&log->kept, __ATOMIC_RELAXED) >= SMELT_MAX_LOG_LINES;
    struct text_source source = {read, context};
    struct log_record *record = full ? NULL : make_record(count, words, &source);
    if (record) record->place = *place;
    pthread_mutex_lock(&log->lock);
    if (record && log->kept < SMELT_MAX_LOG_LINES) {
        record->serial = (uint32_t)log->kept;
        record->before = log->last;
        log->last = record;
        __atomic_store_n(&log->kept, log->kept + 1, __ATOMIC_RELAXED);
        record = NULL;
    } else {
        log->dropped++;
    }
    pthread_mutex_unlock(&log->lock);
    free(record);
}

/* ---- Delivery. */

void launch_log_open(struct launch_log *log) {
    *log = (struct launch_log){.last = NULL};
    pthread_mutex_init(&log->lock, NULL);
}

static int compare_records(const void *a, const void *b) {
    const struct log_record *p = *(struct log_record *const *)a, *q = *(struct log_record *const *)b;
    if (p->place.group != q->place.group) return p->place.group < q->place.group ? -1 : 1;
    if (p->place.index != q->place.index) return p->place.index < q->place.index ? -1 : 1;
    return p->serial < q->serial ? -1 : p->serial > q->serial;
}

static void read_argument(struct log_record *record, uint32_t a, struct format_argument *argument) {
    uint64_t tag = record->words[LOG_HEAD_WORDS + a];
    *argument = (struct format_argument){
        .kind = kind_of(record->words, a), .bytes = (int)(tag >> 8 & 255), .count = (int)(tag >> 16 & 255)};
    for (uint32_t w = 0; w < words_each(record->words); w++)
        argument->words[w] = *argument_word(record->words, a, w);
    if (argument->kind != FORMAT_TEXT) return;
    argument->text = texts_of(record) + argument->words[1];
    argument->text_length = argument->words[2];
}

static void deliver_record(struct log_record *record, const char *kernel, struct text *text) {
    struct format_argument arguments[LOG_MOST_ARGUMENTS];
    uint32_t count = argument_count(record->words);
    const char *texts = texts_of(record);
    for (uint32_t a = 0; a < count; a++) read_argument(record, a, &arguments[a]);
    text->length = 0;
    format_line(texts + record->words[LOG_FORMAT], record->words[LOG_FORMAT + 1], arguments, (int)count,
                text);
    uint64_t level = record->words[LOG_LEVEL];
    smelt_kernel_line line = {.level = level <= SMELT_KERNEL_LOG_FAULT ? (smelt_kernel_log_level)level
                                                                       : SMELT_KERNEL_LOG_DEFAULT,
                              .kernel = kernel,
                              .subsystem = texts + record->words[LOG_SUBSYSTEM],
                              .category = texts + record->words[LOG_CATEGORY],
                              .text = text->length ? text_string(text) : ""};
    memcpy(line.thread, record->place.thread, sizeof line.thread);
    log_kernel_line(&line);
}

/* Without memory for their order they are lost like those that are too many. */
static void deliver_all(struct launch_log *log, const char *kernel) {
    struct log_record **records = malloc((log->kept + 1) * sizeof(struct log_record *));
    struct text text = {0};
    uint64_t at = log->kept;
    if (!records) {
        log->dropped += log->kept;
        log->kept = 0;
        return;
    }
    for (struct log_record *record = log->last; record; record = record->before) records[--at] = record;
    qsort(records, log->kept, sizeof *records, compare_records);
    for (uint64_t i = 0; i < log->kept; i++) deliver_record(records[i], kernel, &text);
    text_free(&text);
    free(records);
}

void launch_log_deliver(struct launch_log *log, const char *kernel, smelt_run_info *info) {
    if (log->kept || log->dropped) {
        const char *message = smelt_error();
        char *kept_message = string_copy(message, strlen(message));
        deliver_all(log, kernel);
        if (log->dropped)
            log_line(SMELT_LOG_WARNING,
                     "kernel '%s' logged %llu lines more than the %d kept per launch; they are lost", kernel,
                     (unsigned long long)log->dropped, SMELT_MAX_LOG_LINES);
        if (kept_message) error_record("%s", kept_message);
        free(kept_message);
    }
    for (struct log_record *record = log->last, *before; record; record = before) {
        before = record->before;
        free(record);
    }
    pthread_mutex_destroy(&log->lock);
    if (!info) return;
    info->log_lines = log->kept;
    info->dropped_log_lines = log->dropped;
}
