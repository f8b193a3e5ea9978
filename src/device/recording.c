#include "device/stream.h"

static smelt_status check(const smelt_stream *stream) {
    if (!stream || stream->usual)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "stream record: %s; a default stream cannot record",
                    stream ? "stream is the device's default" : "stream is NULL");
    if (stream->device->recordings) return SMELT_OK;
    return fail(SMELT_ERROR_UNSUPPORTED,
                "stream record: device '%s' runs launches immediately and cannot record them",
                stream->device->name);
}

smelt_status smelt_stream_record_begin(smelt_stream *stream) {
    TRY(check(stream));
    return stream->device->recordings->begin(stream);
}

smelt_status smelt_stream_record_end(smelt_stream *stream, smelt_recording **recording) {
    if (!recording)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "stream record: the address for the new recording is NULL");
    TRY(check(stream));
    return stream->device->recordings->end(stream, recording);
}

smelt_status smelt_recording_replay(smelt_recording *recording, smelt_stream *stream) {
    if (!recording) return fail(SMELT_ERROR_INVALID_ARGUMENT, "recording replay: recording is NULL");
    return recording->device->recordings->replay(recording, stream);
}

smelt_recording *smelt_recording_retain(smelt_recording *recording) {
    if (recording) atomic_fetch_add(&recording->references, 1);
    return recording;
}

void smelt_recording_release(smelt_recording *recording) {
    if (recording && atomic_fetch_sub(&recording->references, 1) == 1)
        recording->device->recordings->destroy(recording);
}
