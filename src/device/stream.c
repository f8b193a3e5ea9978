#include "device/stream.h"

#include <stdlib.h>

static smelt_status open_stream(const char *name, enum stream_kind kind, void *native, smelt_stream **out) {
    const struct device *device;
    TRY(device_find(name, &device));
    if (native && !device->streams)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "stream: device '%s' has no native streams; expected NULL, not %p", device->name, native);
    smelt_stream *stream = calloc(1, sizeof *stream);
    if (!stream) return fail_out_of_memory(sizeof *stream);
    atomic_init(&stream->references, 1);
    stream->device = device;
    stream->usual = kind == STREAM_USUAL;
    smelt_status status =
        device->streams ? device->streams->open(device, kind, native, &stream->own) : SMELT_OK;
    if (status == SMELT_OK)
        *out = stream;
    else
        free(stream);
    return status;
}

smelt_status smelt_stream_create(const char *device, smelt_stream **stream) {
    if (!stream) return fail(SMELT_ERROR_INVALID_ARGUMENT, "stream: the address for the new stream is NULL");
    return open_stream(device, STREAM_NEW, NULL, stream);
}

smelt_status smelt_stream_from_native(const char *device, void *native, smelt_stream **stream) {
    if (!stream) return fail(SMELT_ERROR_INVALID_ARGUMENT, "stream: the address for the new stream is NULL");
    return open_stream(device, STREAM_NATIVE, native, stream);
}

smelt_status smelt_stream_default(const char *device, smelt_stream **stream) {
    if (!stream) return fail(SMELT_ERROR_INVALID_ARGUMENT, "stream: the address for the stream is NULL");
    return open_stream(device, STREAM_USUAL, NULL, stream);
}

smelt_status smelt_stream_set_memory(smelt_stream *stream, const smelt_stream_memory *memory) {
    if (!stream) return fail(SMELT_ERROR_INVALID_ARGUMENT, "memory of a stream: stream is NULL");
    if (memory && (!memory->take || !memory->give))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "memory of a stream: %s is NULL; expected a function",
                    memory->take ? "give" : "take");
    return stream->own ? stream->device->streams->set_memory(stream, memory) : SMELT_OK;
}

void *smelt_stream_native(const smelt_stream *stream) {
    return stream && stream->own ? stream->device->streams->native(stream) : NULL;
}

smelt_stream *smelt_stream_retain(smelt_stream *stream) {
    if (stream) atomic_fetch_add(&stream->references, 1);
    return stream;
}

void smelt_stream_release(smelt_stream *stream) {
    if (!stream || atomic_fetch_sub(&stream->references, 1) != 1) return;
    if (stream->own) stream->device->streams->close(stream);
    free(stream);
}

smelt_status smelt_stream_wait(smelt_stream *stream) {
    if (!stream) return fail(SMELT_ERROR_INVALID_ARGUMENT, "stream wait: stream is NULL");
    return stream->own ? stream->device->streams->wait(stream) : SMELT_OK;
}

smelt_status smelt_stream_is_done(smelt_stream *stream, bool *done) {
    if (!stream || !done)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "stream is done: %s is NULL", stream ? "done" : "stream");
    if (stream->own) return stream->device->streams->is_done(stream, done);
    *done = true;
    return SMELT_OK;
}
