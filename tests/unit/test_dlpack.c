/* DLPack tensors to arrays and back, in the host's memory. */
#include "outcome.h"

#include "array/array.h"
#include "device/dlpack_layout.h"
#include "smelt/dlpack.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void ok(smelt_status status) {
    if (status != SMELT_OK) FAIL_TEST("%s: %s", smelt_status_name(status), smelt_error());
}

/* A producer's tensor, which counts its deletions. */
struct produced {
    struct DLManagedTensorVersioned versioned;
    struct DLManagedTensor unversioned;
    int64_t shape[20], strides[20];
    int deletes;
};

static void count_delete(struct DLManagedTensorVersioned *self) {
    ((struct produced *)self->manager_ctx)->deletes++;
}

static void count_delete_unversioned(struct DLManagedTensor *self) {
    ((struct produced *)self->manager_ctx)->deletes++;
}

/* Strides of 0 in `strides` NULL: the tensor's are NULL. */
static struct produced *produce(DLDataType type, int ndim, const int64_t *shape, const int64_t *strides,
                                void *data) {
    struct produced *p = calloc(1, sizeof *p);
    if (shape) memcpy(p->shape, shape, (size_t)ndim * sizeof *shape);
    if (strides) memcpy(p->strides, strides, (size_t)ndim * sizeof *strides);
    DLTensor tensor = {.data = data,
                       .device = {kDLCPU, 0},
                       .ndim = ndim,
                       .dtype = type,
                       .shape = shape ? p->shape : NULL,
                       .strides = strides ? p->strides : NULL};
    p->versioned = (struct DLManagedTensorVersioned){{1, 3}, p, count_delete, 0, tensor};
    p->unversioned = (struct DLManagedTensor){tensor, p, count_delete_unversioned};
    return p;
}

static const DLDataType float32 = {kDLFloat, 32, 1};

static void every_dtype_goes_there_and_back(void **state) {
    (void)state;
    for (smelt_dtype d = SMELT_BOOL; d <= SMELT_FLOAT64; d++) {
        smelt_array *array, *back, *old;
        struct DLManagedTensorVersioned *tensor;
        struct DLManagedTensor *unversioned;
        uint64_t flags = 99;
        ok(smelt_array_uniform(d, (smelt_shape){2, {3, 5}}, 1, &array));
        ok(smelt_array_to_dlpack(array, NULL, SMELT_DLPACK_COPIED, &tensor));
        ok(smelt_array_to_dlpack_unversioned(array, NULL, &unversioned));
        assert_int_equal(tensor->version.major, 1);
        assert_int_equal(tensor->dl_tensor.dtype.bits, 8 * smelt_dtype_bytes(d));
        assert_int_equal(tensor->dl_tensor.device.device_type, kDLCPU);
        assert_int_equal(tensor->dl_tensor.strides[0], 5);
        int32_t device = 0, number = 99;
        smelt_dlpack_tensor_device(tensor, &device, &number);
        assert_true(device == kDLCPU && number == 0);
        ok(smelt_array_from_dlpack(tensor, NULL, &flags, &back));
        ok(smelt_array_from_dlpack_unversioned(unversioned, NULL, &old));
        assert_int_equal(flags, SMELT_DLPACK_COPIED);
        assert_int_equal(smelt_array_dtype(back), d);
        assert_int_equal(smelt_array_dtype(old), d);
        assert_ptr_equal(smelt_array_data(back), smelt_array_data(array));
        smelt_array_release(array); /* the tensors keep it alive */
        assert_int_equal(smelt_array_size(old), 15);
        smelt_array_release(back);
        smelt_array_release(old);
    }
    static const DLDataType expected[] = {
        [SMELT_BOOL] = {6, 8, 1},     [SMELT_UINT16] = {1, 16, 1},   [SMELT_INT64] = {0, 64, 1},
        [SMELT_FLOAT16] = {2, 16, 1}, [SMELT_BFLOAT16] = {4, 16, 1}, [SMELT_COMPLEX64] = {5, 64, 1}};
    for (smelt_dtype d = SMELT_BOOL; d <= SMELT_COMPLEX64; d++) {
        smelt_array *array;
        struct DLManagedTensor *tensor;
        if (!expected[d].bits) continue;
        ok(smelt_array_create(d, (smelt_shape){.ndim = 0}, &array));
        ok(smelt_array_to_dlpack_unversioned(array, NULL, &tensor));
        assert_memory_equal(&tensor->dl_tensor.dtype, &expected[d], sizeof expected[d]);
        smelt_dlpack_delete_unversioned(tensor);
        smelt_array_release(array);
    }
}

static void layouts_are_kept(void **state) {
    (void)state;
    float data[24];
    smelt_array *array;
    for (int i = 0; i < 24; i++) data[i] = (float)i;
    /* No strides: row-contiguous. */
    struct produced *p = produce(float32, 2, (int64_t[]){4, 6}, NULL, data);
    ok(smelt_array_from_dlpack(&p->versioned, NULL, NULL, &array));
    assert_true(smelt_array_is_contiguous(array));
    assert_int_equal(smelt_array_strides(array)[0], 6);
    smelt_array_release(array);
    assert_int_equal(p->deletes, 1);
    free(p);
    /* Backwards along the rows, broadcast along a third dimension, from an offset. */
    p = produce(float32, 3, (int64_t[]){4, 5, 6}, (int64_t[]){-6, 0, 1}, data);
    p->unversioned.dl_tensor.byte_offset = 18 * sizeof(float);
    ok(smelt_array_from_dlpack_unversioned(&p->unversioned, NULL, &array));
    smelt_array *dense;
    ok(smelt_array_contiguous(array, &dense));
    const float *values = smelt_array_data(dense);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 5; j++)
            for (int k = 0; k < 6; k++) assert_int_equal((int)values[(i * 5 + j) * 6 + k], (3 - i) * 6 + k);
    smelt_array_release(dense);
    assert_int_equal(p->deletes, 0);
    smelt_array_release(array);
    assert_int_equal(p->deletes, 1);
    free(p);
    /* A scalar has no shape, an empty one no data. */
    p = produce(float32, 0, NULL, NULL, data + 7);
    ok(smelt_array_from_dlpack(&p->versioned, NULL, NULL, &array));
    assert_int_equal(smelt_array_size(array), 1);
    smelt_array_release(array);
    free(p);
    p = produce(float32, 2, (int64_t[]){0, 3}, (int64_t[]){3, 1}, NULL);
    ok(smelt_array_from_dlpack(&p->versioned, NULL, NULL, &array));
    assert_int_equal(smelt_array_size(array), 0);
    struct DLManagedTensor *tensor;
    ok(smelt_array_to_dlpack_unversioned(array, NULL, &tensor));
    assert_null(tensor->dl_tensor.data);
    smelt_dlpack_delete_unversioned(tensor);
    smelt_array_release(array);
    assert_int_equal(p->deletes, 1);
    free(p);
}

static void what_there_are_no_arrays_of_is_refused_and_stays_the_callers(void **state) {
    (void)state;
    _Alignas(16) char data[256];
    const int64_t line[] = {2};
    struct {
        DLDataType type;
        const char *name;
    } types[] = {{{kDLFloat, 32, 4}, "float32 in 4 lanes"},
                 {{kDLComplex, 128, 1}, "complex128"},
                 {{kDLInt, 4, 1}, "int4"},
                 {{10, 8, 1}, "float8_e4m3fn"},
                 {{17, 4, 2}, "float4_e2m1fn in 2 lanes"},
                 {{kDLOpaqueHandle, 64, 1}, "opaque handle64"},
                 {{200, 24, 1}, "code 200 of 24 bits"},
                 {{kDLBool, 1, 1}, "bool1"}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        smelt_array *array = NULL;
        char message[300];
        struct produced *p = produce(types[i].type, 1, line, NULL, data);
        snprintf(message, sizeof message,
                 "DLPack tensor: dtype %s is not supported; expected bool, uint8 to uint64, int8 to int64, "
                 "float16, bfloat16, float32, complex64 or float64, one lane each",
                 types[i].name);
        refused(smelt_array_from_dlpack(&p->versioned, NULL, NULL, &array), SMELT_ERROR_UNSUPPORTED, message);
        refused(smelt_array_from_dlpack_unversioned(&p->unversioned, NULL, &array), SMELT_ERROR_UNSUPPORTED,
                message);
        assert_null(array);
        assert_int_equal(p->deletes, 0);
        smelt_dlpack_delete(&p->versioned);
        assert_int_equal(p->deletes, 1);
        free(p);
    }
}

static void damaged_tensors_are_refused(void **state) {
    (void)state;
    _Alignas(16) char data[256];
    smelt_array *array = NULL;
    int64_t ones[20];
    for (int i = 0; i < 20; i++) ones[i] = 1;
    struct produced *p = produce(float32, 17, ones, NULL, data);
    refused(smelt_array_from_dlpack(&p->versioned, NULL, NULL, &array), SMELT_ERROR_LIMIT,
            "DLPack tensor: it has 17 dimensions, expected 0 to 16");
    p->versioned.version.major = 2;
    refused(smelt_array_from_dlpack(&p->versioned, NULL, NULL, &array), SMELT_ERROR_FORMAT,
            "DLPack tensor: its version is 2.3, expected 1.x");
    p->versioned.version.major = 1;
    p->versioned.dl_tensor.ndim = 1;
    p->versioned.dl_tensor.device = (DLDevice){8, 1};
    refused(
        smelt_array_from_dlpack(&p->versioned, NULL, NULL, &array), SMELT_ERROR_UNSUPPORTED,
        "DLPack tensor: it is on a device of type 8, number 1; expected the host's memory or a CUDA GPU's");
    p->versioned.dl_tensor.device = (DLDevice){kDLCUDA, 77};
    assert_int_equal(smelt_array_from_dlpack(&p->versioned, NULL, NULL, &array), SMELT_ERROR_NO_DEVICE);
    p->versioned.dl_tensor.device = (DLDevice){kDLCUDAHost, 0};
    p->versioned.dl_tensor.shape = NULL;
    refused(smelt_array_from_dlpack(&p->versioned, NULL, NULL, &array), SMELT_ERROR_INVALID_ARGUMENT,
            "DLPack tensor: it has 1 dimensions and no shape");
    p->versioned.dl_tensor.shape = p->shape;
    p->shape[0] = -1;
    assert_int_equal(smelt_array_from_dlpack(&p->versioned, NULL, NULL, &array),
                     SMELT_ERROR_INVALID_ARGUMENT);
    p->shape[0] = 3;
    p->versioned.dl_tensor.data = NULL;
    refused(smelt_array_from_dlpack(&p->versioned, NULL, NULL, &array), SMELT_ERROR_INVALID_ARGUMENT,
            "array from device memory: data is NULL");
    p->versioned.dl_tensor.data = data + 2;
    assert_int_equal(smelt_array_from_dlpack(&p->versioned, NULL, NULL, &array),
                     SMELT_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(smelt_error(), "not aligned to 4 bytes"));
    p->versioned.dl_tensor.byte_offset = 2;
    assert_int_equal(p->deletes, 0);
    ok(smelt_array_from_dlpack(&p->versioned, NULL, NULL,
                               &array)); /* all put right; pinned memory is the host's */
    assert_ptr_equal(smelt_array_data(array), data + 4);
    assert_string_equal(smelt_array_device(array), "cpu");
    smelt_array_release(array);
    assert_int_equal(p->deletes, 1);
    /* A producer may have nothing to delete. */
    p->versioned.deleter = NULL;
    ok(smelt_array_from_dlpack(&p->versioned, NULL, NULL, &array));
    smelt_array_release(array);
    free(p);
    assert_int_equal(smelt_array_from_dlpack(NULL, NULL, NULL, &array), SMELT_ERROR_INVALID_ARGUMENT);
    assert_int_equal(smelt_array_to_dlpack(NULL, NULL, 0, NULL), SMELT_ERROR_INVALID_ARGUMENT);
    smelt_dlpack_delete(NULL);
    smelt_dlpack_delete_unversioned(NULL);
}

static void the_read_only_flag_is_told(void **state) {
    (void)state;
    float data[2] = {0};
    uint64_t flags = 0;
    smelt_array *array;
    struct produced *p = produce(float32, 1, (int64_t[]){2}, NULL, data);
    p->versioned.flags = SMELT_DLPACK_READ_ONLY;
    ok(smelt_array_from_dlpack(&p->versioned, NULL, &flags, &array));
    assert_int_equal(flags, SMELT_DLPACK_READ_ONLY);
    smelt_array_release(array);
    free(p);
}

static void *release(void *array) {
    smelt_array_release(array);
    return NULL;
}

static void views_keep_the_tensor_and_any_thread_may_be_the_last(void **state) {
    (void)state;
    float data[8] = {0};
    smelt_array *array, *view;
    struct produced *p = produce(float32, 1, (int64_t[]){8}, NULL, data);
    ok(smelt_array_from_dlpack(&p->versioned, NULL, NULL, &array));
    ok(smelt_array_view(array, (smelt_shape){1, {4}}, (int64_t[]){2}, 1, &view));
    smelt_array_release(array);
    assert_int_equal(p->deletes, 0);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, release, view), 0);
    pthread_join(thread, NULL);
    assert_int_equal(p->deletes, 1);
    free(p);
}

static void devices_have_numbers(void **state) {
    (void)state;
    int32_t type, number;
    ok(smelt_dlpack_device("cpu", &type, &number));
    assert_true(type == 1 && number == 0);
    ok(smelt_dlpack_device("cuda", &type, &number));
    assert_true(type == 2 && number == 0);
    ok(smelt_dlpack_device("cuda:3", &type, &number));
    assert_true(type == 2 && number == 3);
    static const char *const wrong[] = {"cuda:x", "cuda:", "cuda:-1", "cuda: 1", "cuda:4294967296", "cuda1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char message[128];
        snprintf(message, sizeof message,
                 "DLPack device: '%s' is not a device; expected 'cpu', 'cuda' or 'cuda:N'", wrong[i]);
        refused(smelt_dlpack_device(wrong[i], &type, &number), SMELT_ERROR_NO_DEVICE, message);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dtype_goes_there_and_back),
        cmocka_unit_test(layouts_are_kept),
        cmocka_unit_test(what_there_are_no_arrays_of_is_refused_and_stays_the_callers),
        cmocka_unit_test(damaged_tensors_are_refused),
        cmocka_unit_test(the_read_only_flag_is_told),
        cmocka_unit_test(views_keep_the_tensor_and_any_thread_may_be_the_last),
        cmocka_unit_test(devices_have_numbers),
    };
    return cmocka_run_group_tests_name("dlpack", tests, NULL, NULL);
}
