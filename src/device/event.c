/* Events. Where a device has none of its own, one has happened when it is recorded. */
#include "base/clock.h"
#include "device/stream.h"

#include <stdlib.h>

smelt_status smelt_event_create(const char *name, smelt_event **out) {
    const struct device *device;
    if (!out) return fail(SMELT_ERROR_INVALID_ARGUMENT, "event: the address for the new event is NULL");
    TRY(device_find(name, &device));
    smelt_event *event = NULL;
    if (device->events)
        TRY(device->events->create(device, &event));
    else if (!(event = calloc(1, sizeof *event)))
        return fail_out_of_memory(sizeof *event);
    atomic_init(&event->references, 1);
    event->device = device;
    *out = event;
    return SMELT_OK;
}

smelt_event *smelt_event_retain(smelt_event *event) {
    if (event) atomic_fetch_add(&event->references, 1);
    return event;
}

void smelt_event_release(smelt_event *event) {
    if (!event || atomic_fetch_sub(&event->references, 1) != 1) return;
    if (event->device->events)
        event->device->events->destroy(event);
    else
        free(event);
}

smelt_status smelt_event_record(smelt_event *event, smelt_stream *stream) {
    if (!event) return fail(SMELT_ERROR_INVALID_ARGUMENT, "event record: event is NULL");
    if (stream && stream->device != event->device)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "event record: the event belongs to device '%s', the stream to '%s'", event->device->name,
                    stream->device->name);
    if (event->device->events)
        TRY(event->device->events->record(event, stream));
    else
        atomic_store(&event->seconds, clock_seconds());
    atomic_store(&event->recorded, true);
    return SMELT_OK;
}

smelt_status smelt_event_wait(smelt_event *event) {
    if (!event) return fail(SMELT_ERROR_INVALID_ARGUMENT, "event wait: event is NULL");
    return event->device->events ? event->device->events->wait(event) : SMELT_OK;
}

smelt_status smelt_event_is_done(smelt_event *event, bool *done) {
    if (!event || !done)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "event is done: %s is NULL", event ? "done" : "event");
    if (event->device->events) return event->device->events->is_done(event, done);
    *done = true;
    return SMELT_OK;
}

smelt_status smelt_stream_wait_event(smelt_stream *stream, smelt_event *event) {
    if (!event) return fail(SMELT_ERROR_INVALID_ARGUMENT, "stream wait event: event is NULL");
    const struct event_functions *events = event->device->events;
    if (!events) return SMELT_OK;
    /* The stream of a device that runs everything at once is its caller. */
    if (stream && stream->device->events != events) return smelt_event_wait(event);
    return events->follow(stream, event);
}

smelt_status smelt_event_seconds(smelt_event *start, smelt_event *end, double *seconds) {
    if (!start || !end || !seconds)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "event seconds: %s is NULL",
                    !start ? "start"
                    : !end ? "end"
                           : "seconds");
    if (start->device != end->device)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "event seconds: start belongs to device '%s', end to '%s'; expected events of one device",
                    start->device->name, end->device->name);
    if (!atomic_load(&start->recorded) || !atomic_load(&end->recorded))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "event seconds: %s has not been recorded",
                    atomic_load(&start->recorded) ? "end" : "start");
    if (start->device->events) return start->device->events->seconds(start, end, seconds);
    *seconds = atomic_load(&end->seconds) - atomic_load(&start->seconds);
    return SMELT_OK;
}
