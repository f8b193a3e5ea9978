#include "base/trace.h"
#include "base/older_glibc.h"
#include "base/file.h"
#include "base/json.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* As many events are kept, by default and at most; and so many bytes of text for each of them, on average.
 * Usual ones take 200 to 500. */
#define USUAL_EVENTS 500000
#define MOST_EVENTS 10000000
#define EVENT_BYTES ((size_t)1024)
/* The limit on names of tracks, for processes with endless short-lived threads. */
#define MOST_NAMES 10000

#define CHUNK_BYTES ((size_t)1 << 20)
#define MOST_STRING_BYTES 600

_Atomic uint32_t trace_running;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Under the lock. `number` stays from the start to the end of stopping. */
static struct capture {
    uint32_t number;
    bool halted;
    char *path; /* absolute, for the file; … */
    char *name; /* … as it was given, for messages */
    int64_t start;
    uint64_t limit, count, dropped;
    int names;
    struct text *chunks; /* each event a line that ends in ",\n" */
    int chunk_count, chunk_capacity;
    size_t bytes;
    struct text names_text;
} capture;

/* ---- Arguments. */

static void add_name(struct trace_slice *slice, const char *name) {
    text_add(&slice->arguments, slice->arguments.length ? ",\"" : "\"");
    text_add(&slice->arguments, name);
    text_add(&slice->arguments, "\":");
}

void trace_string(struct trace_slice *slice, const char *name, const char *value) {
    add_name(slice, name);
    json_add_string(&slice->arguments, value ? value : "", MOST_STRING_BYTES);
}

void trace_integer(struct trace_slice *slice, const char *name, int64_t value) {
    add_name(slice, name);
    text_addf(&slice->arguments, "%lld", (long long)value);
}

void trace_real(struct trace_slice *slice, const char *name, double value) {
    add_name(slice, name);
    text_addf(&slice->arguments, "%.9g", value);
}

void trace_triple(struct trace_slice *slice, const char *name, const uint64_t value[3]) {
    add_name(slice, name);
    text_addf(&slice->arguments, "[%llu,%llu,%llu]", (unsigned long long)value[0],
              (unsigned long long)value[1], (unsigned long long)value[2]);
}

void trace_json(struct trace_slice *slice, const char *name, const char *value) {
    add_name(slice, name);
    text_add(&slice->arguments, value);
}

void trace_status(struct trace_slice *slice, smelt_status status) {
    if (status == SMELT_OK) return;
    trace_string(slice, "status", smelt_status_name(status));
    trace_string(slice, "error", smelt_error());
}

/* ---- Events as text. */

/* Microseconds, with the nanoseconds behind the point: no slice is rounded out of the one around it. */
static void add_time(struct text *text, const char *name, int64_t nanoseconds) {
    if (nanoseconds < 0) nanoseconds = 0;
    text_addf(text, ",\"%s\":%lld.%03lld", name, (long long)(nanoseconds / 1000),
              (long long)(nanoseconds % 1000));
}

static void write_slice(const struct trace_slice *slice, int64_t origin, struct text *line) {
    int64_t start = slice->start > origin ? slice->start : origin;
    text_add(line, "{\"ph\":\"X\",\"cat\":");
    json_add_string(line, slice->category, MOST_STRING_BYTES);
    text_add(line, ",\"name\":");
    json_add_string(line, slice->name, MOST_STRING_BYTES);
    add_time(line, "ts", start - origin);
    add_time(line, "dur", slice->end - start);
    text_addf(line, ",\"pid\":%lld,\"tid\":%lld", (long long)slice->track.process,
              (long long)slice->track.thread);
    if (slice->flow_out || slice->flow_in)
        text_addf(line, ",\"bind_id\":\"0x%llx\",\"%s\":true",
                  (unsigned long long)(slice->flow_out ? slice->flow_out : slice->flow_in),
                  slice->flow_out ? "flow_out" : "flow_in");
    text_addf(line, ",\"args\":{%s}},\n", text_string(&slice->arguments));
}

/* ---- The kept lines. Under the lock. */

static bool is_open(uint32_t number) {
    return number && capture.number == number;
}

/* The chunk with room for the line; NULL if out of memory. */
static struct text *chunk_for(size_t bytes) {
    if (capture.chunk_count) {
        struct text *last = &capture.chunks[capture.chunk_count - 1];
        if (last->length + bytes < last->capacity) return last;
    }
    if (capture.chunk_count == capture.chunk_capacity) {
        int capacity = capture.chunk_capacity ? 2 * capture.chunk_capacity : 16;
        struct text *grown = realloc(capture.chunks, (size_t)capacity * sizeof *grown);
        if (!grown) return NULL;
        capture.chunks = grown;
        capture.chunk_capacity = capacity;
    }
    struct text *made = &capture.chunks[capture.chunk_count];
    *made = (struct text){0};
    text_reserve(made, bytes < CHUNK_BYTES ? CHUNK_BYTES : bytes);
    if (made->failed) return NULL;
    capture.chunk_count++;
    return made;
}

static void keep(const struct text *line) {
    bool room = !line->failed && capture.count < capture.limit &&
                capture.bytes + line->length <= capture.limit * EVENT_BYTES;
    struct text *chunk = room ? chunk_for(line->length + 1) : NULL;
    if (!chunk) {
        capture.dropped++;
        return;
    }
    text_append(chunk, line->data, line->length);
    capture.bytes += line->length;
    capture.count++;
}

static void keep_name(const char *what, struct trace_track track, const char *key, const char *name) {
    struct text *text = &capture.names_text;
    if (capture.names >= MOST_NAMES) return;
    capture.names++;
    text_addf(text, "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%lld,\"tid\":%lld,\"args\":{\"%s\":", what,
              (long long)track.process, (long long)track.thread, key);
    json_add_string(text, name, MOST_STRING_BYTES);
    text_add(text, "}},\n");
}

/* The calling thread's track, which gets a name at its first slice: the one the system has for it. */
static struct trace_track own_track(uint32_t number) {
    static _Thread_local struct {
        uint32_t capture;
        struct trace_track track;
    } own;
    if (own.capture == number) return own.track;
    char name[32] = "thread";
    own.track = (struct trace_track){getpid(), gettid()};
    (void)pthread_getname_np(pthread_self(), name, sizeof name);
    bool first = own.track.process == own.track.thread;
    pthread_mutex_lock(&lock);
    if (is_open(number)) {
        keep_name("thread_name", own.track, "name", first ? "main thread" : name);
        own.capture = number;
    }
    pthread_mutex_unlock(&lock);
    return own.track;
}

void trace_add(uint32_t number, struct trace_slice *slice) {
    struct text line = {0};
    if (!slice->track.process) slice->track = own_track(number);
    pthread_mutex_lock(&lock);
    bool open = is_open(number);
    int64_t origin = capture.start;
    pthread_mutex_unlock(&lock);
    if (open) {
        write_slice(slice, origin, &line);
        line.failed |= slice->arguments.failed;
        pthread_mutex_lock(&lock);
        if (is_open(number)) keep(&line);
        pthread_mutex_unlock(&lock);
    }
    text_free(&line);
    text_free(&slice->arguments);
}

void trace_end(struct trace_span span, struct trace_slice *slice) {
    slice->start = span.start;
    slice->end = clock_nanoseconds();
    trace_add(span.capture, slice);
}

void trace_end_plain(struct trace_span span, const char *category, const char *name) {
    struct trace_slice slice = {.category = category, .name = name};
    if (span.capture) trace_end(span, &slice);
}

void trace_name_process(uint32_t number, int64_t process, const char *name, const char *label) {
    struct trace_track track = {process, process};
    pthread_mutex_lock(&lock);
    if (is_open(number)) {
        keep_name("process_name", track, "name", name);
        if (label) keep_name("process_labels", track, "labels", label);
    }
    pthread_mutex_unlock(&lock);
}

void trace_name_thread(uint32_t number, struct trace_track track, const char *name) {
    pthread_mutex_lock(&lock);
    if (is_open(number)) keep_name("thread_name", track, "name", name);
    pthread_mutex_unlock(&lock);
}

void trace_lose(uint32_t number, uint64_t events) {
    pthread_mutex_lock(&lock);
    if (is_open(number)) capture.dropped += events;
    pthread_mutex_unlock(&lock);
}

uint64_t trace_flow(void) {
    static _Atomic uint64_t last;
    return atomic_fetch_add(&last, 1) + 1;
}

/* ---- Starting and stopping. */

static void free_capture(struct capture *done) {
    for (int i = 0; i < done->chunk_count; i++) text_free(&done->chunks[i]);
    free(done->chunks);
    text_free(&done->names_text);
    free(done->path);
    free(done->name);
    *done = (struct capture){0};
}

/* A forked child has a copy of the recording, which only its parent writes. */
static void before_fork(void) {
    pthread_mutex_lock(&lock);
}

static void after_fork(void) {
    pthread_mutex_unlock(&lock);
}

static void in_child(void) {
    atomic_store(&trace_running, 0);
    free_capture(&capture);
    pthread_mutex_unlock(&lock);
}

static void watch_forks(void) {
    (void)pthread_atfork(before_fork, after_fork, in_child);
}

static uint64_t limit_of_events(void) {
    const char *setting = getenv("SMELT_TRACE_EVENTS");
    char *end;
    if (!setting) return USUAL_EVENTS;
    errno = 0;
    long long value = strtoll(setting, &end, 10);
    if (*setting && !*end && !errno && value >= 1 && value <= MOST_EVENTS) return (uint64_t)value;
    log_line(SMELT_LOG_WARNING, "SMELT_TRACE_EVENTS is '%s', expected 1 to %d; using %d", setting,
             MOST_EVENTS, USUAL_EVENTS);
    return USUAL_EVENTS;
}

/* The process may be in another folder when the trace ends. */
static char *absolute(const char *path) {
    if (*path == '/') return string_copy(path, strlen(path));
    char *folder = getcwd(NULL, 0);
    struct text whole = {0};
    text_addf(&whole, "%s/%s", folder ? folder : ".", path);
    free(folder);
    if (whole.failed) text_free(&whole);
    return whole.data;
}

smelt_status trace_open(const char *path) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static uint32_t last; /* under the lock */
    smelt_status status = SMELT_OK;
    pthread_once(&once, watch_forks);
    TRY(file_check_writable(path));
    uint64_t limit = limit_of_events();
    char *file = absolute(path), *name = string_copy(path, strlen(path));
    pthread_mutex_lock(&lock);
    if (capture.number) {
        status =
            fail(SMELT_ERROR_INVALID_ARGUMENT,
                 "trace start: a trace is already being recorded, to file '%s'; stop it first", capture.name);
    } else if (!file || !name) {
        status = fail_out_of_memory(strlen(path) + 1);
    } else {
        capture.path = file;
        capture.name = name;
        capture.limit = limit;
        capture.start = clock_nanoseconds();
        if (!++last) last = 1;
        capture.number = last;
        file = name = NULL;
        keep_name("process_name", (struct trace_track){getpid(), getpid()}, "name", "smelt");
        atomic_store(&trace_running, capture.number);
    }
    pthread_mutex_unlock(&lock);
    free(file);
    free(name);
    return status;
}

smelt_status trace_halt(uint32_t *number) {
    pthread_mutex_lock(&lock);
    bool running = capture.number && !capture.halted;
    *number = capture.number;
    capture.halted = running;
    if (running) atomic_store(&trace_running, 0);
    pthread_mutex_unlock(&lock);
    if (running) return SMELT_OK;
    return fail(SMELT_ERROR_INVALID_ARGUMENT,
                "trace stop: no trace is being recorded; call smelt_trace_start first");
}

static void write_head(const struct capture *done, struct text *head) {
    text_add(head, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"writer\":\"smelt\"");
    text_addf(head, ",\"version\":\"%s\",\"clock\":\"CLOCK_MONOTONIC\",\"start_ns\":%lld", smelt_version(),
              (long long)done->start);
    text_addf(head, ",\"duration_ns\":%lld", (long long)(clock_nanoseconds() - done->start));
    text_addf(head, ",\"events\":%llu,\"dropped_events\":%llu,\"event_limit\":%llu},\n\"traceEvents\":[\n",
              (unsigned long long)done->count, (unsigned long long)done->dropped,
              (unsigned long long)done->limit);
}

static smelt_status write_file(const struct capture *done) {
    static const char tail[] = "]}\n";
    struct text head = {0};
    struct bytes *pieces = calloc((size_t)done->chunk_count + 3, sizeof *pieces);
    smelt_status status = SMELT_OK;
    int count = 0;
    write_head(done, &head);
    if (!pieces || head.failed || done->names_text.length < 2) status = fail_out_of_memory(head.length);
    if (status == SMELT_OK) {
        pieces[count++] = (struct bytes){head.data, head.length};
        for (int i = 0; i < done->chunk_count; i++)
            pieces[count++] = (struct bytes){done->chunks[i].data, done->chunks[i].length};
        /* The last line has no comma behind it: names, of which there is always that of the process. */
        pieces[count++] = (struct bytes){done->names_text.data, done->names_text.length - 2};
        pieces[count++] = (struct bytes){tail, sizeof tail - 1};
        status = file_write(done->path, pieces, count);
    }
    text_free(&head);
    free(pieces);
    return status;
}

smelt_status trace_close(void) {
    pthread_mutex_lock(&lock);
    struct capture done = capture;
    capture = (struct capture){0};
    pthread_mutex_unlock(&lock);
    smelt_status status = write_file(&done);
    if (done.dropped && status == SMELT_OK)
        log_line(SMELT_LOG_WARNING, "trace '%s': %llu events were dropped; at most %llu are kept", done.name,
                 (unsigned long long)done.dropped, (unsigned long long)done.limit);
    free_capture(&done);
    return status;
}
