#include "cuda/launches.h"

#include <string.h>

const struct fake_cuda *fake;

void expect_failure(smelt_status status, smelt_status expected, const char *message) {
    if (status != expected)
        FAIL_TEST("status %s (%s), expected %s", smelt_status_name(status), status ? smelt_error() : "",
                  smelt_status_name(expected));
    assert_string_equal(smelt_error(), message);
}

int open_fake(void **state) {
    (void)state;
    fake = fake_cuda_open(FAKE_CUDA);
    return fake ? 0 : 1;
}

int check_fake(void **state) {
    (void)state;
    static const char *const kinds[] = {"module", "link", "block"};
    smelt_status status = smelt_device_wait("cuda");
    if (status != SMELT_OK) FAIL_TEST("waiting for the GPU: %s", smelt_error());
    fake->launch(NULL, NULL);
    if (fake->violation()) FAIL_TEST("%s", fake->violation());
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (fake->alive(kinds[i])) FAIL_TEST("%d of %s are left", fake->alive(kinds[i]), kinds[i]);
    return 0;
}

smelt_array *floats(const char *device, int64_t count, float first, float step) {
    smelt_array *host, *array;
    OK(smelt_array_create(SMELT_FLOAT32, (smelt_shape){1, {count}}, &host));
    for (int64_t i = 0; i < count; i++) ((float *)smelt_array_data(host))[i] = first + step * (float)i;
    OK(smelt_array_to(host, device, NULL, &array));
    smelt_array_release(host);
    return array;
}

smelt_array *on_host(smelt_array *array) {
    smelt_array *host;
    OK(smelt_array_to(array, "cpu", NULL, &host));
    smelt_array_release(array);
    return host;
}

float value_of(smelt_array *array, int64_t index) {
    return ((const float *)smelt_array_data(array))[index];
}

smelt_function *function_of(const char *source, const char *name) {
    smelt_library *library;
    smelt_function *function;
    OK(smelt_library_create(&(smelt_library_desc){.source = source}, &library));
    OK(smelt_library_function(library, &(smelt_function_desc){.name = name}, &function));
    smelt_library_release(library);
    return function;
}

void see(struct seen *seen, const struct fake_launch *launch, int slots) {
    size_t end = (sizeof(struct cuda_parameters) + (size_t)slots * 8 + 15) / 16 * 16;
    const char *parameter = launch->parameter;
    size_t left = launch->parameter_bytes - end;
    seen->launches++;
    seen->launch = *launch;
    memcpy(&seen->head, parameter, sizeof seen->head);
    memcpy(seen->slots, parameter + sizeof seen->head, (size_t)slots * 8);
    memset(seen->bytes, 0, sizeof seen->bytes);
    memcpy(seen->bytes, parameter + end, left < sizeof seen->bytes ? left : sizeof seen->bytes);
}

CUresult run_axpy(const struct fake_launch *launch, void *context) {
    struct seen *seen = context;
    float a;
    see(seen, launch, 3);
    memcpy(&a, seen->bytes, sizeof a);
    float *y = (float *)(uintptr_t)seen->slots[0];
    const float *x = (const float *)(uintptr_t)seen->slots[1];
    fake->touch(seen->slots[0], true);
    fake->touch(seen->slots[1], false);
    for (uint32_t i = 0; i < seen->head.grid[0]; i++) y[i] += a * x[i];
    return CUDA_SUCCESS;
}
