/* Shared by the parts of the fake driver. One lock guards everything and is held in every call. */
#ifndef SMELT_TESTS_FAKE_INTERNAL_H
#define SMELT_TESTS_FAKE_INTERNAL_H

#include "fake_driver.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#define FAKE_MOST_DEVICES 4
#define FAKE_MOST_STREAMS 256 /* created by one process */
#define FAKE_MOST_ENDS 64     /* nodes that the next one of a capture depends on */

/* Results in addition to those of driver.h. */
enum {
    FAKE_INVALID_HANDLE = 400,
    FAKE_NOT_FOUND = 500,
    FAKE_CAPTURE_UNSUPPORTED = 900,
    FAKE_CAPTURE_INVALIDATED = 901,
    FAKE_CAPTURE_ISOLATION = 905
};

enum kind {
    KIND_BLOCK,
    KIND_PINNED,
    KIND_STREAM,
    KIND_EVENT,
    KIND_GRAPH,
    KIND_MODULE,
    KIND_LINK,
    KIND_COUNT
};

/* The work of each stream that precedes something: its first clock[i] pieces. */
struct clock {
    uint32_t done[FAKE_MOST_STREAMS];
};
void clock_join(struct clock *clock, const struct clock *other);

/* The head of every object. Objects are never freed, so that uses of destroyed ones are detected. */
struct object {
    struct object *next;
    enum kind kind;
    int device;
    bool dead;
};

struct block {
    struct object object;
    char *memory;
    size_t bytes;
    bool given;         /* cuMemFreeAsync was called, … */
    bool released;      /* … and its turn has come */
    int writer;         /* stream of the last write; -1: none */
    uint32_t written;   /* and its place there */
    struct clock reads; /* the last read of each stream */
};

struct pinned {
    struct object object;
    char *memory;
    size_t bytes;
};

enum work_kind { WORK_ALLOCATE, WORK_RELEASE, WORK_COPY, WORK_FILL, WORK_WAIT, WORK_RECORD, WORK_LAUNCH };

struct work {
    enum work_kind kind;
    struct clock before; /* what precedes it */
    uint32_t place;      /* in its stream, from 1 */
    struct block *block;
    char *to;
    const char *from;
    void *own; /* freed with it: a snapshot of what it reads, or the parameter */
    size_t bytes;
    uint32_t value, width;
    struct CUstream_st *other; /* waits: until its piece `until` is done */
    uint32_t until;
    struct CUevent_st *event;
    uint64_t record; /* which recording of the event it is */
    struct CUfunc_st *function;
    struct fake_launch launch;
};

struct works {
    struct work *items;
    size_t count, capacity;
};

struct CUstream_st {
    struct object object;
    int index;
    struct works works;
    size_t done;        /* of them */
    struct clock clock; /* what precedes the next piece */
    struct CUgraph_st *capture;
    bool capture_broken;
    /* What the next work of the capture depends on, set when the capture had `works` works. */
    struct {
        CUgraphNode nodes[FAKE_MOST_ENDS];
        size_t count, works;
    } ends;
    unsigned questions; /* queries for completion */
};

struct CUevent_st {
    struct object object;
    bool recorded;
    struct CUstream_st *stream;
    uint32_t place;
    struct clock clock;
    uint64_t records;   /* enqueued, … */
    uint64_t happened;  /* … and done */
    unsigned questions; /* queries for completion */
    double time;        /* of the last completed one, in milliseconds */
};

struct CUgraph_st {
    struct object object;
    struct works works;
};

struct CUmod_st {
    struct object object;
    char *image;
    struct CUfunc_st *functions;
};

struct CUfunc_st {
    struct CUfunc_st *next;
    struct CUmod_st *module;
    char name[256];
    size_t parameter_bytes;
    int dynamic_limit;
};

struct CUctx_st {
    int device;
    int retained;
};

struct CUmemPoolHandle_st {
    int device;
    uint64_t threshold;
};

struct fake_device {
    struct CUctx_st context;
    struct CUmemPoolHandle_st pool;
    struct CUstream_st *legacy; /* the default stream, NULL */
    int capability;
    uint64_t used, reserved;
    size_t cached[4096]; /* sizes of blocks in the pool */
    int cached_count;
    CUresult sticky;
};

struct fake {
    pthread_mutex_t lock; /* recursive: launches call hooks */
    int device_count;
    bool initialised, pools, deferred, real_clock;
    unsigned patience; /* queries before the work is done */
    uint64_t memory;
    struct fake_device devices[FAKE_MOST_DEVICES];
    struct object *objects;
    struct CUstream_st *streams[FAKE_MOST_STREAMS];
    int stream_count;
    struct clock host; /* what the host has waited for */
    CUresult next_fault;
    bool for_good; /* after the next fault there is no new context: */
    CUresult gone; /* the result of requesting one */
    uint64_t time;
    fake_launch_hook *launch_hook;
    void *launch_context;
    char violation[400];
};
extern struct fake fake;

/* Begins a call of the driver: counts it, and returns a result if the call must fail; the lock is held in any
 * case. */
enum { NEEDS_NOTHING, NEEDS_INIT, NEEDS_CONTEXT };
CUresult call_begin(const char *symbol, int needs);
CUresult call_end(CUresult result);
#define CALL(symbol, needs)                                            \
    do {                                                               \
        CUresult call_result = call_begin(symbol, needs);              \
        if (call_result != CUDA_SUCCESS) return call_end(call_result); \
    } while (0)
/* Ends it. */
#define GIVE(result) return call_end(result)

/* The calling thread's device. */
struct fake_device *current_device(void);
int current_device_index(void);

void violate(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A new object on the current device. */
void *object_new(enum kind kind, size_t size);
/* Whether it is a living object of this kind; otherwise that is a violation, with the name of the call. */
bool object_check(void *object, enum kind kind, const char *symbol);

/* ---- Memory. */
struct block *block_at(const void *address); /* also destroyed ones; or NULL */
bool block_use(struct block *block, const struct work *work, int stream, bool writes);
void block_release(struct block *block);
struct pinned *pinned_at(const void *address, size_t bytes);

/* ---- Streams. */
struct CUstream_st *stream_of(CUstream handle, const char *symbol);
struct work *enqueue(struct CUstream_st *stream, enum work_kind kind);
/* After the work has been described: performs it immediately unless deferred. */
void enqueued(struct CUstream_st *stream);
void run_all(struct CUstream_st *stream);
/* The work in progress. */
extern const struct work *running;
extern struct CUstream_st *running_stream;

CUresult launch_run(const struct work *work);

#endif
