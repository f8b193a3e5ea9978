#include "abi/compiler_wire.h"
#include "abi/build_id.h"

#include <stdio.h>
#include <stdlib.h>

/* What both kinds of message begin with. Generated code must fit the runtime, so the builds are compared: the
 * files of another version may replace those of a process while it runs. */
struct head {
    char magic[8], build[112];
    uint32_t interface, request_size, constant_size, result_size;
};

static struct head expected_head(void) {
    struct head head = {.magic = "smeltcc",
                        .interface = COMPILER_INTERFACE,
                        .request_size = sizeof(struct compile_request),
                        .constant_size = sizeof(smelt_constant),
                        .result_size = sizeof(struct compile_result)};
    snprintf(head.build, sizeof head.build, "%s", build_id);
    return head;
}

/* ---- Writing: numbers as they lie in memory, blocks behind their size. */

static void put(struct text *bytes, const void *data, size_t size) {
    text_append(bytes, data, size);
}

static void put_head(struct text *bytes) {
    struct head head = expected_head();
    put(bytes, &head, sizeof head);
}

static void put_size(struct text *bytes, uint64_t size) {
    put(bytes, &size, sizeof size);
}

#define ABSENT UINT64_MAX /* the size of a block that is NULL */

static void put_block(struct text *bytes, const void *data, size_t size) {
    put_size(bytes, data ? size : ABSENT);
    if (data) put(bytes, data, size);
}

/* With its zero. */
static void put_string(struct text *bytes, const char *string) {
    put_block(bytes, string, string ? strlen(string) + 1 : 0);
}

/* ---- Reading: what is not there makes `bad` true, and all further reads give nothing. */

struct reader {
    const char *at;
    size_t left;
    bool bad;
};

static const char *take(struct reader *reader, uint64_t size) {
    if (reader->bad || size > reader->left) {
        reader->bad = true;
        return NULL;
    }
    const char *taken = reader->at;
    reader->at += size;
    reader->left -= size;
    return taken;
}

static void take_into(struct reader *reader, void *to, size_t size) {
    const char *from = take(reader, size);
    if (from) memcpy(to, from, size);
}

static uint64_t take_size(struct reader *reader) {
    uint64_t size = 0;
    take_into(reader, &size, sizeof size);
    return size;
}

static const char *take_block(struct reader *reader, size_t *size) {
    uint64_t wanted = take_size(reader);
    *size = wanted == ABSENT ? 0 : (size_t)wanted;
    return wanted == ABSENT ? NULL : take(reader, wanted);
}

static const char *take_string(struct reader *reader) {
    size_t size;
    const char *string = take_block(reader, &size);
    if (string && (!size || string[size - 1])) reader->bad = true;
    return reader->bad ? NULL : string;
}

static struct reader begin(const char *bytes, size_t size) {
    struct reader reader = {.at = bytes, .left = size};
    struct head head = {0}, expected = expected_head();
    take_into(&reader, &head, sizeof head);
    reader.bad |= memcmp(&head, &expected, sizeof head) != 0;
    return reader;
}

/* ---- Requests. */

/* A field more must be carried too: then the sum below and this number change. */
_Static_assert(sizeof(struct compile_request) == 9 * sizeof(uint64_t) + sizeof(struct code_shape) +
                                                     sizeof(struct known_values) + 3 * sizeof(int32_t),
               "compile_request has fields that are not written");

static size_t count_constants(const smelt_constant *constants) {
    size_t count = 0;
    while (constants && constants[count].dtype != SMELT_NO_DTYPE && count < SMELT_MAX_CONSTANTS) count++;
    return count;
}

void compile_request_write(const struct compile_request *request, struct text *bytes) {
    struct compile_request plain = *request;
    plain.bitcode = plain.after = plain.only = plain.cpu = plain.features = NULL;
    plain.constants = NULL;
    plain.progress = NULL;
    plain.progress_fd = 0;
    put_head(bytes);
    put(bytes, &plain, sizeof plain);
    put_block(bytes, request->bitcode ? request->bitcode : "", request->bitcode_size);
    put_string(bytes, request->after);
    put_string(bytes, request->only);
    put_string(bytes, request->cpu);
    put_string(bytes, request->features);
    size_t count = count_constants(request->constants);
    put_size(bytes, request->constants ? count : ABSENT);
    for (size_t i = 0; i < count; i++) {
        put(bytes, &request->constants[i], sizeof *request->constants);
        put_string(bytes, request->constants[i].name);
    }
}

bool compile_request_read(const char *bytes, size_t size, struct compile_request *request,
                          smelt_constant constants[SMELT_MAX_CONSTANTS + 1]) {
    struct reader reader = begin(bytes, size);
    take_into(&reader, request, sizeof *request);
    request->bitcode = take_block(&reader, &request->bitcode_size);
    request->after = take_string(&reader);
    request->only = take_string(&reader);
    request->cpu = take_string(&reader);
    request->features = take_string(&reader);
    uint64_t count = take_size(&reader);
    request->constants = count == ABSENT ? NULL : constants;
    if (count == ABSENT) count = 0;
    if (count > SMELT_MAX_CONSTANTS) return false;
    for (uint64_t i = 0; i < count; i++) {
        take_into(&reader, &constants[i], sizeof *constants);
        constants[i].name = take_string(&reader);
    }
    constants[count] = (smelt_constant){.dtype = SMELT_NO_DTYPE};
    return !reader.bad && request->bitcode && !reader.left;
}

/* ---- Results. */

void compile_result_write(smelt_status status, enum compile_output output,
                          const struct compile_result *result, struct text *bytes) {
    put_head(bytes);
    put_size(bytes, (uint64_t)status);
    put(bytes, result->message, sizeof result->message);
    put_string(bytes, result->text);
    put_block(bytes, result->constants, (size_t)result->constant_count * sizeof *result->constants);
    put_size(bytes, result->image.has_barrier);
    char *image = NULL;
    size_t size = 0;
    if (status == SMELT_OK && output == COMPILE_OBJECT &&
        image_write(&result->image, &image, &size) != SMELT_OK)
        bytes->failed = true;
    put_block(bytes, image, size);
    free(image);
}

static bool copy_parts(const char *text, const char *constants, size_t size, struct compile_result *result) {
    if (text) result->text = string_copy(text, strlen(text));
    if (constants) {
        result->constants = malloc(size ? size : 1);
        result->constant_count = (int)(size / sizeof *result->constants);
        if (result->constants) memcpy(result->constants, constants, size);
    }
    return !text == !result->text && !constants == !result->constants;
}

bool compile_result_read(const char *bytes, size_t size, smelt_status *status,
                         struct compile_result *result) {
    struct reader reader = begin(bytes, size);
    size_t constants_size, image_size;
    *result = (struct compile_result){0};
    *status = (smelt_status)take_size(&reader);
    take_into(&reader, result->message, sizeof result->message);
    const char *text = take_string(&reader);
    const char *constants = take_block(&reader, &constants_size);
    result->image.has_barrier = take_size(&reader) != 0;
    const char *image = take_block(&reader, &image_size);
    result->message[sizeof result->message - 1] = 0;
    bool good = !reader.bad && !reader.left && copy_parts(text, constants, constants_size, result) &&
                (!image || image_read(image, image_size, &result->image) == SMELT_OK);
    if (good) return true;
    free(result->text);
    free(result->constants);
    *result = (struct compile_result){0};
    return false;
}
