/* The fake driver: streams and what is enqueued on them, events, graphs. */
#include "base/clock.h"
#include "fake_internal.h"

#include <math.h>

#define EXPORT __attribute__((visibility("default")))

const struct work *running;
struct CUstream_st *running_stream;

/* ---- Doing work. */

static void run_until(struct CUstream_st *stream, size_t count);

static void do_copy(const struct work *work, int stream) {
    struct block *source = block_at(work->from), *target = block_at(work->to);
    if (source && !block_use(source, work, stream, false)) return;
    if (target && !block_use(target, work, stream, true)) return;
    bool gone = (!source && !work->own && !pinned_at(work->from, work->bytes)) ||
                (!target && source && pinned_at(work->to, 1) && !pinned_at(work->to, work->bytes));
    if (gone)
        violate("a copy's turn comes when its pinned memory is gone");
    else
        memmove(work->to, work->from, work->bytes);
}

static void do_fill(const struct work *work, int stream) {
    struct block *block = block_at(work->to);
    /* It was there when the fill was enqueued. */
    if (!block) violate("a fill's turn comes when its memory was given back");
    if (!block || !block_use(block, work, stream, true)) return;
    for (size_t at = 0; at < work->bytes; at += work->width) memcpy(work->to + at, &work->value, work->width);
}

static void do_release(const struct work *work, int stream) {
    struct fake_device *device = &fake.devices[work->block->object.device];
    if (!block_use(work->block, work, stream, true)) return;
    block_release(work->block);
    work->block->object.dead = true;
    device->used -= work->block->bytes;
    if (device->cached_count < (int)(sizeof device->cached / sizeof *device->cached))
        device->cached[device->cached_count++] = work->block->bytes;
}

static void do_work(struct CUstream_st *stream, const struct work *work) {
    struct fake_device *device = &fake.devices[stream->object.device];
    CUresult result = CUDA_SUCCESS;
    fake.time++;
    if (device->sticky) return;
    switch (work->kind) {
    case WORK_ALLOCATE:
        block_use(work->block, work, stream->index, true);
        break;
    case WORK_RELEASE:
        do_release(work, stream->index);
        break;
    case WORK_COPY:
        do_copy(work, stream->index);
        break;
    case WORK_FILL:
        do_fill(work, stream->index);
        break;
    case WORK_WAIT:
        run_until(work->other, work->until);
        break;
    case WORK_RECORD:
        work->event->happened = work->record;
        work->event->time = fake.real_clock ? 1e3 * clock_seconds() : (double)fake.time;
        break;
    case WORK_LAUNCH:
        running = work;
        running_stream = stream;
        result = launch_run(work);
        running = NULL;
        running_stream = NULL;
        break;
    }
    if (result != CUDA_SUCCESS) device->sticky = result;
}

static void run_until(struct CUstream_st *stream, size_t count) {
    while (stream->done < count && stream->done < stream->works.count) {
        struct work work = stream->works.items[stream->done];
        /* Counted before it is performed: the array may grow meanwhile, and waits must not return to it. */
        stream->works.items[stream->done++].own = NULL;
        do_work(stream, &work);
        free(work.own);
    }
}

void run_all(struct CUstream_st *stream) {
    run_until(stream, stream->works.count);
}

static struct work *append(struct works *works) {
    if (works->count == works->capacity) {
        works->capacity = works->capacity ? 2 * works->capacity : 16;
        works->items = realloc(works->items, works->capacity * sizeof *works->items);
        if (!works->items) abort();
    }
    struct work *work = &works->items[works->count++];
    memset(work, 0, sizeof *work);
    return work;
}

/* Assigns a piece of work its place in the stream. */
static void place(struct CUstream_st *stream, struct work *work) {
    clock_join(&stream->clock, &fake.host);
    work->before = stream->clock;
    work->place = (uint32_t)stream->works.count;
    stream->clock.done[stream->index] = work->place;
}

struct work *enqueue(struct CUstream_st *stream, enum work_kind kind) {
    struct work *work = append(stream->capture ? &stream->capture->works : &stream->works);
    work->kind = kind;
    if (!stream->capture) place(stream, work);
    return work;
}

void enqueued(struct CUstream_st *stream) {
    if (!fake.deferred && !stream->capture) run_all(stream);
}

/* ---- Streams. */

static struct CUstream_st *stream_new(void) {
    struct CUstream_st *stream = object_new(KIND_STREAM, sizeof *stream);
    if (fake.stream_count == FAKE_MOST_STREAMS) abort();
    stream->index = fake.stream_count;
    fake.streams[fake.stream_count++] = stream;
    return stream;
}

struct CUstream_st *stream_of(CUstream handle, const char *symbol) {
    if (!handle) {
        struct fake_device *device = current_device();
        if (!device->legacy) device->legacy = stream_new();
        return device->legacy;
    }
    if (!object_check(handle, KIND_STREAM, symbol)) return NULL;
    if (handle->object.device != current_device_index())
        violate("%s: the stream is of device %d, the context of %d", symbol, handle->object.device,
                current_device_index());
    return handle;
}

EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
    CALL("cuStreamCreate", NEEDS_CONTEXT);
    (void)flags;
    *stream = stream_new();
    GIVE(CUDA_SUCCESS);
}

EXPORT CUresult cuStreamDestroy_v2(CUstream handle) {
    CALL("cuStreamDestroy_v2", NEEDS_CONTEXT);
    struct CUstream_st *stream = handle ? stream_of(handle, "cuStreamDestroy_v2") : NULL;
    if (!stream) GIVE(FAKE_INVALID_HANDLE);
    if (stream->capture) violate("a stream is destroyed while it records");
    /* Its pending work still takes place. */
    stream->object.dead = true;
    GIVE(CUDA_SUCCESS);
}

/* The fault that is reported when something waits. */
static CUresult wait_result(struct fake_device *device) {
    if (!device->sticky && fake.next_fault) {
        device->sticky = fake.next_fault;
        if (fake.for_good) fake.gone = fake.next_fault;
        fake.next_fault = CUDA_SUCCESS;
    }
    return device->sticky;
}

EXPORT CUresult cuStreamSynchronize(CUstream handle) {
    CALL("cuStreamSynchronize", NEEDS_CONTEXT);
    struct CUstream_st *stream = stream_of(handle, "cuStreamSynchronize");
    if (!stream) GIVE(FAKE_INVALID_HANDLE);
    if (stream->capture) {
        stream->capture_broken = true;
        GIVE(FAKE_CAPTURE_UNSUPPORTED);
    }
    run_all(stream);
    clock_join(&fake.host, &stream->clock);
    GIVE(wait_result(current_device()));
}

EXPORT CUresult cuStreamQuery(CUstream handle) {
    CALL("cuStreamQuery", NEEDS_CONTEXT);
    struct CUstream_st *stream = stream_of(handle, "cuStreamQuery");
    if (!stream) GIVE(FAKE_INVALID_HANDLE);
    if (stream->capture) {
        stream->capture_broken = true;
        GIVE(FAKE_CAPTURE_UNSUPPORTED);
    }
    /* Time passes while a program queries repeatedly. */
    if (stream->done < stream->works.count && stream->questions++ >= fake.patience) {
        stream->questions = 0;
        run_all(stream);
    }
    if (stream->done < stream->works.count) GIVE(CUDA_ERROR_NOT_READY);
    clock_join(&fake.host, &stream->clock);
    GIVE(wait_result(current_device()));
}

EXPORT CUresult cuCtxSynchronize(void) {
    CALL("cuCtxSynchronize", NEEDS_CONTEXT);
    for (int i = 0; i < fake.stream_count; i++) {
        struct CUstream_st *stream = fake.streams[i];
        if (stream->object.device != current_device_index()) continue;
        if (stream->capture) {
            stream->capture_broken = true;
            GIVE(FAKE_CAPTURE_UNSUPPORTED);
        }
        run_all(stream);
        clock_join(&fake.host, &stream->clock);
    }
    GIVE(wait_result(current_device()));
}

/* ---- Events. */

EXPORT CUresult cuEventCreate(CUevent *event, unsigned flags) {
    CALL("cuEventCreate", NEEDS_CONTEXT);
    (void)flags;
    *event = object_new(KIND_EVENT, sizeof **event);
    GIVE(CUDA_SUCCESS);
}

EXPORT CUresult cuEventDestroy_v2(CUevent event) {
    CALL("cuEventDestroy_v2", NEEDS_CONTEXT);
    if (!object_check(event, KIND_EVENT, "cuEventDestroy_v2")) GIVE(FAKE_INVALID_HANDLE);
    event->object.dead = true;
    GIVE(CUDA_SUCCESS);
}

EXPORT CUresult cuEventRecord(CUevent event, CUstream handle) {
    CALL("cuEventRecord", NEEDS_CONTEXT);
    struct CUstream_st *stream = handle ? handle : stream_of(NULL, "cuEventRecord");
    if (!object_check(stream, KIND_STREAM, "cuEventRecord") ||
        !object_check(event, KIND_EVENT, "cuEventRecord") || event->object.device != stream->object.device)
        GIVE(FAKE_INVALID_HANDLE);
    if (stream->capture) {
        violate("an event is recorded on a stream that records");
        GIVE(FAKE_CAPTURE_UNSUPPORTED);
    }
    struct work *work = enqueue(stream, WORK_RECORD);
    work->event = event;
    work->record = ++event->records;
    event->recorded = true;
    event->stream = stream;
    event->place = work->place;
    event->clock = stream->clock;
    enqueued(stream);
    GIVE(CUDA_SUCCESS);
}

EXPORT CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned flags) {
    CALL("cuStreamWaitEvent", NEEDS_CONTEXT);
    (void)flags;
    struct CUstream_st *stream = handle ? handle : stream_of(NULL, "cuStreamWaitEvent");
    if (!object_check(stream, KIND_STREAM, "cuStreamWaitEvent") ||
        !object_check(event, KIND_EVENT, "cuStreamWaitEvent"))
        GIVE(FAKE_INVALID_HANDLE);
    if (stream->capture) {
        stream->capture_broken = true;
        GIVE(FAKE_CAPTURE_ISOLATION);
    }
    if (!event->recorded) GIVE(CUDA_SUCCESS);
    struct work *work = enqueue(stream, WORK_WAIT);
    work->other = event->stream;
    work->until = event->place;
    clock_join(&stream->clock, &event->clock);
    enqueued(stream);
    GIVE(CUDA_SUCCESS);
}

EXPORT CUresult cuEventSynchronize(CUevent event) {
    CALL("cuEventSynchronize", NEEDS_CONTEXT);
    if (!object_check(event, KIND_EVENT, "cuEventSynchronize")) GIVE(FAKE_INVALID_HANDLE);
    if (event->recorded) {
        run_until(event->stream, event->place);
        clock_join(&fake.host, &event->clock);
    }
    GIVE(wait_result(current_device()));
}

EXPORT CUresult cuEventQuery(CUevent event) {
    CALL("cuEventQuery", NEEDS_CONTEXT);
    if (!object_check(event, KIND_EVENT, "cuEventQuery")) GIVE(FAKE_INVALID_HANDLE);
    if (event->happened < event->records && event->questions++ >= fake.patience) {
        event->questions = 0;
        run_until(event->stream, event->place);
    }
    if (event->happened < event->records) GIVE(CUDA_ERROR_NOT_READY);
    if (event->recorded) clock_join(&fake.host, &event->clock);
    GIVE(wait_result(current_device()));
}

EXPORT CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
    CALL("cuEventElapsedTime", NEEDS_CONTEXT);
    if (!object_check(start, KIND_EVENT, "cuEventElapsedTime") ||
        !object_check(end, KIND_EVENT, "cuEventElapsedTime") || !start->recorded || !end->recorded)
        GIVE(FAKE_INVALID_HANDLE);
    if (start->happened != start->records || end->happened != end->records) GIVE(CUDA_ERROR_NOT_READY);
    double time = end->time - start->time;
    *milliseconds = (float)(fake.real_clock ? 5e-4 * rint(time / 5e-4) : time);
    GIVE(CUDA_SUCCESS);
}

/* ---- Graphs. */

EXPORT CUresult cuStreamBeginCapture_v2(CUstream handle, int mode) {
    CALL("cuStreamBeginCapture_v2", NEEDS_CONTEXT);
    (void)mode;
    struct CUstream_st *stream = handle ? stream_of(handle, "cuStreamBeginCapture_v2") : NULL;
    if (!stream || stream->capture) GIVE(FAKE_CAPTURE_UNSUPPORTED);
    stream->capture = object_new(KIND_GRAPH, sizeof *stream->capture);
    stream->capture_broken = false;
    stream->ends.count = stream->ends.works = 0;
    GIVE(CUDA_SUCCESS);
}

EXPORT CUresult cuStreamEndCapture(CUstream handle, CUgraph *graph) {
    CALL("cuStreamEndCapture", NEEDS_CONTEXT);
    struct CUstream_st *stream = handle ? stream_of(handle, "cuStreamEndCapture") : NULL;
    if (!stream || !stream->capture) GIVE(CUDA_ERROR_INVALID_VALUE);
    *graph = stream->capture;
    stream->capture = NULL;
    if (!stream->capture_broken) GIVE(CUDA_SUCCESS);
    (*graph)->object.dead = true;
    *graph = NULL;
    GIVE(FAKE_CAPTURE_INVALIDATED);
}

EXPORT CUresult cuStreamIsCapturing(CUstream handle, int *status) {
    CALL("cuStreamIsCapturing", NEEDS_CONTEXT);
    struct CUstream_st *stream = stream_of(handle, "cuStreamIsCapturing");
    if (!stream) GIVE(FAKE_INVALID_HANDLE);
    *status = !stream->capture ? 0 : stream->capture_broken ? 2 : 1;
    GIVE(CUDA_SUCCESS);
}

EXPORT CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
    static __thread int current; /* 0: global */
    CALL("cuThreadExchangeStreamCaptureMode", NEEDS_NOTHING);
    int before = current;
    current = *mode;
    *mode = before;
    GIVE(CUDA_SUCCESS);
}

/* Works run in the order of their recording, which every branch allows. A node is a work's number, from 1. As
 * CUDA does for the dependencies of a node, duplicates are refused. */
EXPORT CUresult cuStreamGetCaptureInfo_v2(CUstream handle, int *status, unsigned long long *id,
                                          CUgraph *graph, const CUgraphNode **nodes, size_t *count) {
    CALL("cuStreamGetCaptureInfo_v2", NEEDS_CONTEXT);
    struct CUstream_st *stream = handle ? stream_of(handle, "cuStreamGetCaptureInfo_v2") : NULL;
    if (!stream || !stream->capture) GIVE(CUDA_ERROR_INVALID_VALUE);
    size_t works = stream->capture->works.count;
    if (works > stream->ends.works) {
        stream->ends.nodes[0] = (CUgraphNode)(uintptr_t)works;
        stream->ends.count = 1, stream->ends.works = works;
    }
    *status = 1, *id = 1, *graph = stream->capture, *nodes = stream->ends.nodes, *count = stream->ends.count;
    GIVE(CUDA_SUCCESS);
}

EXPORT CUresult cuStreamUpdateCaptureDependencies(CUstream handle, CUgraphNode *nodes, size_t count,
                                                  unsigned flags) {
    CALL("cuStreamUpdateCaptureDependencies", NEEDS_CONTEXT);
    struct CUstream_st *stream = handle ? stream_of(handle, "cuStreamUpdateCaptureDependencies") : NULL;
    if (!stream || !stream->capture || flags != 1) GIVE(CUDA_ERROR_INVALID_VALUE);
    if (count > FAKE_MOST_ENDS) abort();
    for (size_t i = 0; i < count; i++) {
        if ((uintptr_t)nodes[i] < 1 || (uintptr_t)nodes[i] > stream->capture->works.count)
            GIVE(CUDA_ERROR_INVALID_VALUE);
        for (size_t k = 0; k < i; k++)
            if (nodes[k] == nodes[i]) GIVE(CUDA_ERROR_INVALID_VALUE);
    }
    for (size_t i = 0; i < count; i++) stream->ends.nodes[i] = nodes[i];
    stream->ends.count = count, stream->ends.works = stream->capture->works.count;
    GIVE(CUDA_SUCCESS);
}

static void copy_work(struct work *to, const struct work *from) {
    struct clock before = to->before;
    uint32_t at = to->place;
    *to = *from;
    to->before = before;
    to->place = at;
    if (!from->own) return;
    to->own = malloc(from->bytes + 1);
    if (!to->own) abort();
    memcpy(to->own, from->own, from->bytes);
    if (from->kind == WORK_LAUNCH)
        to->launch.parameter = to->own;
    else
        to->from = to->own;
}

#ifndef FAKE_CUDA_OLD
EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *executable, CUgraph graph,
                                            unsigned long long flags) {
    CALL("cuGraphInstantiateWithFlags", NEEDS_CONTEXT);
    (void)flags;
    if (!object_check(graph, KIND_GRAPH, "cuGraphInstantiateWithFlags")) GIVE(FAKE_INVALID_HANDLE);
    struct CUgraph_st *made = object_new(KIND_GRAPH, sizeof *made);
    for (size_t i = 0; i < graph->works.count; i++) copy_work(append(&made->works), &graph->works.items[i]);
    *executable = (CUgraphExec)made;
    GIVE(CUDA_SUCCESS);
}
#endif

EXPORT CUresult cuGraphLaunch(CUgraphExec executable, CUstream handle) {
    CALL("cuGraphLaunch", NEEDS_CONTEXT);
    struct CUgraph_st *graph = (struct CUgraph_st *)executable;
    struct CUstream_st *stream = stream_of(handle, "cuGraphLaunch");
    if (!stream || !object_check(graph, KIND_GRAPH, "cuGraphLaunch")) GIVE(FAKE_INVALID_HANDLE);
    if (stream->capture) violate("a graph is launched on a stream that records");
    for (size_t i = 0; i < graph->works.count; i++) {
        copy_work(enqueue(stream, graph->works.items[i].kind), &graph->works.items[i]);
        enqueued(stream);
    }
    GIVE(CUDA_SUCCESS);
}

static CUresult destroy_graph(const char *symbol, struct CUgraph_st *graph) {
    if (!object_check(graph, KIND_GRAPH, symbol)) return FAKE_INVALID_HANDLE;
    for (size_t i = 0; i < graph->works.count; i++) free(graph->works.items[i].own);
    free(graph->works.items);
    graph->works = (struct works){0};
    graph->object.dead = true;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphExecDestroy(CUgraphExec executable) {
    CALL("cuGraphExecDestroy", NEEDS_CONTEXT);
    GIVE(destroy_graph("cuGraphExecDestroy", (struct CUgraph_st *)executable));
}

EXPORT CUresult cuGraphDestroy(CUgraph graph) {
    CALL("cuGraphDestroy", NEEDS_CONTEXT);
    GIVE(destroy_graph("cuGraphDestroy", graph));
}
