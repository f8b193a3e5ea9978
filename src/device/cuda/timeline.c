#include "device/cuda/timeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Events' times are told as a float of milliseconds since another event: within so long they are exact to
 * half a microsecond, which is what the driver resolves. */
#define ANCHOR_NANOSECONDS ((int64_t)4000000000)
/* The host's clock is read before and after the GPU passes an event on an idle stream; the tightest of some
 * attempts counts, and one so tight is good enough at once. */
#define ANCHOR_ATTEMPTS 4
#define ANCHOR_TIGHT_NANOSECONDS 8000

/* Pieces whose events wait to be read: from so many on those that have ended are read at the next one; of
 * more than the most, new ones are left out. */
#define MANY_PIECES 1024
#define MOST_PIECES 65536

/* No process has such a number. */
#define FIRST_PROCESS INT64_C(10000000)

/* An event, and the host's time when the GPU passed it. */
struct anchor {
    struct anchor *next;
    CUevent event;
    int64_t host;
};

struct piece {
    struct piece *next;
    const struct anchor *anchor;
    CUevent start, end;
    struct cuda_stream *stream; /* a reference */
    struct trace_slice slice;
    char *name;
};

/* Of one GPU in one capture. */
struct timeline {
    struct timeline *next;
    struct cuda_gpu *gpu;
    uint32_t capture, epoch;
    CUstream beside;        /* idle, for anchors */
    struct anchor *anchors; /* the latest first */
    struct piece *first, **last;
    int count;
    CUevent *spare;
    int spare_count, spare_capacity;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all that follows */
static struct timeline *timelines;

static int64_t process_of(const struct cuda_gpu *gpu) {
    return FIRST_PROCESS * (1 + gpu->ordinal);
}

/* ---- Events. */

static CUresult take_event(struct timeline *t, CUevent *event) {
    if (!t->spare_count) return t->gpu->driver->event_create(event, 0);
    *event = t->spare[--t->spare_count];
    return CUDA_SUCCESS;
}

static void give_event(struct timeline *t, CUevent event) {
    if (t->spare_count == t->spare_capacity) {
        int capacity = t->spare_capacity ? 2 * t->spare_capacity : 64;
        CUevent *grown = realloc(t->spare, (size_t)capacity * sizeof(CUevent));
        if (!grown) {
            (void)t->gpu->driver->event_destroy(event);
            return;
        }
        t->spare = grown;
        t->spare_capacity = capacity;
    }
    t->spare[t->spare_count++] = event;
}

/* ---- The GPU's clock and the host's. */

/* *spread: between the two looks at the host's clock. */
static CUresult pass(const struct timeline *t, CUevent event, int64_t *host, int64_t *spread) {
    const struct cuda_driver *driver = t->gpu->driver;
    int64_t before = clock_nanoseconds();
    CUresult result = driver->event_record(event, t->beside);
    if (result == CUDA_SUCCESS) result = driver->event_wait(event);
    *spread = clock_nanoseconds() - before;
    *host = before + *spread / 2;
    return result;
}

static CUresult drop_anchor(struct timeline *t) {
    struct anchor *anchor = calloc(1, sizeof *anchor);
    CUevent other = NULL;
    int64_t host, spread, best = INT64_MAX;
    if (!anchor) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = take_event(t, &anchor->event);
    if (result != CUDA_SUCCESS) {
        free(anchor);
        return result;
    }
    result = take_event(t, &other);
    for (int i = 0; i < ANCHOR_ATTEMPTS && best > ANCHOR_TIGHT_NANOSECONDS && result == CUDA_SUCCESS; i++) {
        result = pass(t, other, &host, &spread);
        if (result != CUDA_SUCCESS || spread >= best) continue;
        CUevent kept = anchor->event;
        anchor->event = other;
        other = kept;
        anchor->host = host;
        best = spread;
    }
    if (other) give_event(t, other);
    if (best == INT64_MAX) {
        give_event(t, anchor->event);
        free(anchor);
        return result;
    }
    anchor->next = t->anchors;
    t->anchors = anchor;
    return CUDA_SUCCESS;
}

/* ---- Timelines. */

static struct timeline *find(const struct cuda_gpu *gpu) {
    struct timeline *t = timelines;
    while (t && t->gpu != gpu) t = t->next;
    return t;
}

static CUresult open_timeline(struct timeline *t, struct cuda_gpu *gpu, uint32_t capture) {
    *t = (struct timeline){.next = t->next, .gpu = gpu, .epoch = atomic_load(&gpu->epoch), .last = &t->first};
    CUresult result = gpu->driver->stream_create(&t->beside, CUDA_STREAM_NON_BLOCKING);
    if (result == CUDA_SUCCESS) {
        result = drop_anchor(t);
        if (result != CUDA_SUCCESS) (void)gpu->driver->stream_destroy(t->beside);
    }
    if (result != CUDA_SUCCESS) return result;
    t->capture = capture;
    trace_name_process(capture, process_of(gpu), gpu->name, gpu->description);
    return CUDA_SUCCESS;
}

static void drop_piece(struct piece *piece) {
    text_free(&piece->slice.arguments);
    cuda_stream_release(piece->stream);
    free(piece->name);
    free(piece);
}

/* `there`: the GPU is entered, and its objects still exist. */
static void close_timeline(struct timeline *t, bool there) {
    const struct cuda_driver *driver = t->gpu->driver;
    trace_lose(t->capture, (uint64_t)t->count);
    for (struct piece *p = t->first, *next; p; p = next) {
        next = p->next;
        if (there) (void)driver->event_destroy(p->start);
        if (there) (void)driver->event_destroy(p->end);
        drop_piece(p);
    }
    for (struct anchor *a = t->anchors, *next; a; a = next) {
        next = a->next;
        if (there) (void)driver->event_destroy(a->event);
        free(a);
    }
    for (int i = 0; i < t->spare_count && there; i++) (void)driver->event_destroy(t->spare[i]);
    if (there) (void)driver->stream_destroy(t->beside);
    free(t->spare);
    *t = (struct timeline){.next = t->next, .gpu = t->gpu, .last = &t->first};
}

/* The GPU's timeline in the capture, opened at its first use, and again after a reset; NULL without one. */
static struct timeline *timeline_for(struct cuda_gpu *gpu, uint32_t capture) {
    struct timeline *t = find(gpu);
    if (trace_capture() != capture) return NULL;
    if (t && t->capture == capture && t->epoch == atomic_load(&gpu->epoch)) return t;
    if (!t) {
        t = calloc(1, sizeof *t);
        if (!t) return NULL;
        t->gpu = gpu;
        t->next = timelines;
        timelines = t;
    } else if (t->capture) {
        close_timeline(t, t->epoch == atomic_load(&gpu->epoch));
    }
    CUresult result = open_timeline(t, gpu, capture);
    cuda_note(gpu, result);
    return result == CUDA_SUCCESS ? t : NULL;
}

/* ---- Reading. */

static void name_stream(const struct timeline *t, struct cuda_stream *stream) {
    char name[64];
    struct trace_track track = {process_of(t->gpu), process_of(t->gpu) + 1 + stream->number};
    if (stream->traced == t->capture) return;
    stream->traced = t->capture;
    if (stream == t->gpu->default_stream)
        snprintf(name, sizeof name, "default stream");
    else if (!stream->owned && !stream->handle)
        snprintf(name, sizeof name, "CUDA's default stream");
    else
        snprintf(name, sizeof name, "stream %u%s", stream->number, stream->owned ? "" : " of the caller");
    trace_name_thread(t->capture, track, name);
}

/* Pieces of one stream do not overlap; where their times do, by less than they are exact, the later one
 * begins when the earlier one has ended, and a little later: for viewers that cut nanoseconds off. */
static CUresult read_piece(const struct timeline *t, struct piece *piece) {
    const struct cuda_driver *driver = t->gpu->driver;
    struct cuda_stream *stream = piece->stream;
    float since_anchor, taken;
    CUresult result = driver->event_elapsed(&since_anchor, piece->anchor->event, piece->start);
    if (result == CUDA_SUCCESS) result = driver->event_elapsed(&taken, piece->start, piece->end);
    if (result != CUDA_SUCCESS) return result;
    struct trace_slice *slice = &piece->slice;
    slice->start = piece->anchor->host + (int64_t)(1e6 * (double)since_anchor);
    slice->end = slice->start + (int64_t)(1e6 * (double)taken);
    if (slice->start < stream->traced_until) slice->start = stream->traced_until + 2;
    if (slice->end < slice->start) slice->end = slice->start;
    stream->traced_until = slice->end;
    slice->name = piece->name;
    slice->track = (struct trace_track){process_of(t->gpu), process_of(t->gpu) + 1 + stream->number};
    name_stream(t, stream);
    trace_add(t->capture, slice);
    return CUDA_SUCCESS;
}

/* Reads the pieces that have ended; with `wait`, all. */
static void settle(struct timeline *t, bool wait) {
    const struct cuda_driver *driver = t->gpu->driver;
    while (t->first) {
        struct piece *piece = t->first;
        CUresult result = wait ? driver->event_wait(piece->end) : driver->event_query(piece->end);
        if (result == CUDA_ERROR_NOT_READY) return;
        if (result == CUDA_SUCCESS) result = read_piece(t, piece);
        if (result != CUDA_SUCCESS) {
            cuda_note(t->gpu, result);
            trace_lose(t->capture, 1);
        }
        t->first = piece->next;
        if (!t->first) t->last = &t->first;
        t->count--;
        give_event(t, piece->start);
        give_event(t, piece->end);
        drop_piece(piece);
    }
}

/* ---- Marks. */

struct cuda_mark cuda_mark_begin_traced(struct cuda_stream *stream) {
    struct cuda_mark mark = {trace_capture(), NULL};
    struct cuda_gpu *gpu = stream->gpu;
    if (cuda_stream_records(stream) || cuda_stream_is_captured(stream)) return (struct cuda_mark){0, NULL};
    pthread_mutex_lock(&lock);
    struct timeline *t = timeline_for(gpu, mark.capture);
    CUresult result = t ? take_event(t, &mark.start) : CUDA_ERROR_NOT_READY;
    if (t && result == CUDA_SUCCESS) {
        result = gpu->driver->event_record(mark.start, stream->handle);
        if (result != CUDA_SUCCESS) give_event(t, mark.start);
    }
    pthread_mutex_unlock(&lock);
    if (result == CUDA_SUCCESS) return mark;
    if (t) cuda_note(gpu, result);
    trace_lose(mark.capture, 1);
    return (struct cuda_mark){0, NULL};
}

/* Under the lock. */
static bool add_piece(struct timeline *t, struct cuda_stream *stream, const struct cuda_mark *mark,
                      struct trace_slice *slice) {
    struct piece *piece = calloc(1, sizeof *piece);
    CUevent end = NULL;
    if (t->count >= MANY_PIECES) settle(t, false);
    if (clock_nanoseconds() - t->anchors->host > ANCHOR_NANOSECONDS) cuda_note(t->gpu, drop_anchor(t));
    bool good = piece && t->count < MOST_PIECES && take_event(t, &end) == CUDA_SUCCESS;
    if (good && t->gpu->driver->event_record(end, stream->handle) != CUDA_SUCCESS) {
        give_event(t, end);
        good = false;
    }
    if (good) piece->name = strdup(slice->name);
    if (!good || !piece->name) {
        free(piece);
        return false;
    }
    piece->anchor = t->anchors;
    piece->start = mark->start;
    piece->end = end;
    piece->stream = cuda_stream_retain(stream);
    piece->slice = *slice;
    slice->arguments = (struct text){0};
    *t->last = piece;
    t->last = &piece->next;
    t->count++;
    return true;
}

void cuda_mark_end(struct cuda_stream *stream, const struct cuda_mark *mark, struct trace_slice *slice) {
    struct cuda_gpu *gpu = stream->gpu;
    pthread_mutex_lock(&lock);
    struct timeline *t = find(gpu);
    if (!t || t->capture != mark->capture || t->epoch != atomic_load(&gpu->epoch)) {
        /* The trace has ended meanwhile. */
        (void)gpu->driver->event_destroy(mark->start);
    } else if (!add_piece(t, stream, mark, slice)) {
        give_event(t, mark->start);
        trace_lose(mark->capture, 1);
    }
    pthread_mutex_unlock(&lock);
    text_free(&slice->arguments);
}

void cuda_mark_end_bytes(struct cuda_stream *stream, const struct cuda_mark *mark, const char *name,
                         size_t bytes) {
    struct trace_slice slice = {.category = "copy", .name = name};
    if (!mark->capture) return;
    trace_integer(&slice, "bytes", (int64_t)bytes);
    cuda_mark_end(stream, mark, &slice);
}

/* Enters the GPU before taking the lock, in the same order as marks do. */
static void finish(struct timeline *t, uint32_t capture, uint32_t epoch) {
    CUcontext previous;
    bool entered = cuda_enter_release(t->gpu, epoch, &previous);
    pthread_mutex_lock(&lock);
    if (t->capture == capture) {
        bool there = entered && t->epoch == epoch;
        if (there) settle(t, true);
        close_timeline(t, there);
    }
    pthread_mutex_unlock(&lock);
    if (entered) cuda_leave(t->gpu, previous);
}

void cuda_timeline_finish(uint32_t capture) {
    pthread_mutex_lock(&lock);
    struct timeline *t = timelines;
    while (t) {
        uint32_t epoch = t->epoch;
        bool wanted = t->capture == capture;
        pthread_mutex_unlock(&lock);
        if (wanted) finish(t, capture, epoch);
        pthread_mutex_lock(&lock);
        t = t->next;
    }
    pthread_mutex_unlock(&lock);
}
