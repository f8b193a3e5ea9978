/* The trace that smelt_trace_start and smelt_trace_stop enclose: slices of time on tracks, kept in memory as
 * lines of Chrome's trace-event format and written when the trace is stopped.
 *
 * Traced code calls trace_begin before and trace_end after:
 *
 *   struct trace_span span = trace_begin();
 *   …
 *   if (span.capture) {
 *       struct trace_slice slice = {.category = "copy", .name = "fill"};
 *       trace_integer(&slice, "bytes", bytes);
 *       trace_end(span, &slice);
 *   }
 *
 * Without a trace this costs one relaxed load and two branches. A slice belongs to the capture it began in,
 * and is dropped if that capture is over. */
#ifndef SMELT_BASE_TRACE_H
#define SMELT_BASE_TRACE_H

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"

#include <stdatomic.h>

/* 0 while nothing is traced; else the number of the capture. Read by trace_begin alone. */
extern _Atomic uint32_t trace_running;

struct trace_span {
    uint32_t capture; /* 0: nothing is traced */
    int64_t start;
};

static inline uint32_t trace_capture(void) {
    return atomic_load_explicit(&trace_running, memory_order_relaxed);
}

static inline struct trace_span trace_begin(void) {
    uint32_t capture = trace_capture();
    return (struct trace_span){capture, capture ? clock_nanoseconds() : 0};
}

/* Rows of the display. Zero: the calling thread's own. Slices of one track are disjoint or nested. */
struct trace_track {
    int64_t process, thread;
};

struct trace_slice {
    const char *category, *name;
    int64_t start, end; /* of clock_nanoseconds */
    struct trace_track track;
    uint64_t flow_out,
        flow_in;           /* an arrow goes from the slice with a number out to that with it in; 0: none */
    struct text arguments; /* filled by the functions below; freed by trace_add */
};

/* Arguments, shown for a selected slice. Strings are truncated after some hundred bytes. */
void trace_string(struct trace_slice *slice, const char *name, const char *value);
void trace_integer(struct trace_slice *slice, const char *name, int64_t value);
void trace_real(struct trace_slice *slice, const char *name, double value);
/* [x, y, z] */
void trace_triple(struct trace_slice *slice, const char *name, const uint64_t value[3]);
/* `value` is JSON. */
void trace_json(struct trace_slice *slice, const char *name, const char *value);
/* The result: nothing if OK, else the status's name and the thread's message. */
void trace_status(struct trace_slice *slice, smelt_status status);

/* Adds the slice, if the capture still runs and has room; takes its arguments. Keeps the thread's message. */
void trace_add(uint32_t capture, struct trace_slice *slice);
/* … from the span's start to now, on the calling thread's track. */
void trace_end(struct trace_span span, struct trace_slice *slice);
/* … without arguments. */
void trace_end_plain(struct trace_span span, const char *category, const char *name);

/* Names tracks, once per capture each. */
void trace_name_process(uint32_t capture, int64_t process, const char *name, const char *label);
void trace_name_thread(uint32_t capture, struct trace_track track, const char *name);

/* Counts events that could not be kept or came to nothing. */
void trace_lose(uint32_t capture, uint64_t events);

/* A number for an arrow. */
uint64_t trace_flow(void);

/* ---- For smelt_trace_start and _stop. */

/* INVALID_ARGUMENT if a trace runs; IO if the path cannot be written. */
smelt_status trace_open(const char *path);
/* No slice begins after this; slices that began are still accepted. */
smelt_status trace_halt(uint32_t *capture);
/* After trace_halt: writes the file and forgets everything. */
smelt_status trace_close(void);

#endif
