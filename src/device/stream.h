/* Streams, events and recordings: the public handles, and a device's functions for them. A device without
 * these functions runs everything immediately. */
#ifndef SMELT_DEVICE_STREAM_H
#define SMELT_DEVICE_STREAM_H

#include "device/device.h"

#include <stdatomic.h>

struct smelt_stream {
    atomic_int references;
    const struct device *device;
    void *own;  /* the device's; NULL: it has no streams */
    bool usual; /* a handle on the device's default stream, which outlives it */
};

/* The head of a device's own event. */
struct smelt_event {
    atomic_int references;
    const struct device *device;
    atomic_bool recorded;
    _Atomic double seconds; /* when, if the device has no events */
};

/* The head of a device's own recording. */
struct smelt_recording {
    atomic_int references;
    const struct device *device;
};

/* Arguments of all functions below are checked. A stream that is NULL is the device's default; one that is
 * not may be of another device, or from before a reset, where nothing else is said. */

enum stream_kind { STREAM_NEW, STREAM_NATIVE, STREAM_USUAL };

struct stream_functions {
    /* `native`: for STREAM_NATIVE, the caller's own stream. */
    smelt_status (*open)(const struct device *device, enum stream_kind kind, void *native, void **own);
    /* The last reference is gone; the handle itself is freed by the caller. */
    void (*close)(smelt_stream *stream);
    void *(*native)(const smelt_stream *stream);
    smelt_status (*set_memory)(smelt_stream *stream, const smelt_stream_memory *memory);
    smelt_status (*wait)(smelt_stream *stream);
    smelt_status (*is_done)(smelt_stream *stream, bool *done);
};

struct event_functions {
    /* Zeros, except for the device's own part. */
    smelt_status (*create)(const struct device *device, smelt_event **event);
    void (*destroy)(smelt_event *event);
    smelt_status (*record)(smelt_event *event, smelt_stream *stream);
    smelt_status (*wait)(smelt_event *event);
    smelt_status (*is_done)(smelt_event *event, bool *done);
    /* Makes a stream wait, of a device with the same functions. */
    smelt_status (*follow)(smelt_stream *stream, smelt_event *event);
    /* Of two events of one device that have been recorded; waits for them. */
    smelt_status (*seconds)(smelt_event *start, smelt_event *end, double *seconds);
};

/* The work that the next launch of a recording waits for. */
struct recording_ends {
    void **nodes; /* the device's, each once. The array is allocated by malloc and owned by the caller */
    size_t count;
};

struct recording_functions {
    /* On a stream that is not a default one. */
    smelt_status (*begin)(smelt_stream *stream);
    smelt_status (*end)(smelt_stream *stream, smelt_recording **recording);
    smelt_status (*replay)(smelt_recording *recording, smelt_stream *stream);
    void (*destroy)(smelt_recording *recording);
    /* (optional: both or neither) For a stream that is recording. ends: returns the work that the next launch
     * waits for. wait_for: makes the next launch wait for other work instead. */
    smelt_status (*ends)(smelt_stream *stream, struct recording_ends *ends);
    smelt_status (*wait_for)(smelt_stream *stream, const struct recording_ends *ends);
};

#endif
