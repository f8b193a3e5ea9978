/* Making what -b binds: arrays, tensors, arrays of safetensors files. */
#include "array_value.h"
#include "commands.h"
#include "values.h"

#include "smelt/safetensors.h"

static bool is_format(int element) {
    return element > (int)SMELT_FLOAT64;
}

/* Random codes: of real formats the nearest to numbers in [0, 1), of others all. */
static smelt_status random_codes(int element, smelt_array *into, uint64_t seed) {
    smelt_shape shape = smelt_array_shape(into);
    smelt_array *random, *bytes;
    bool real = element == SMELT_FP4_E2M1 || element == SMELT_FP8_E4M3 || element == SMELT_FP8_E5M2;
    int bits = smelt_element_bits(element), in_byte = real ? 8 / bits : 1;
    smelt_shape numbers = shape;
    numbers.size[shape.ndim - 1] *= in_byte;
    smelt_status status = smelt_array_uniform(real ? SMELT_FLOAT32 : SMELT_UINT8, numbers, seed, &random);
    if (status != SMELT_OK) return status;
    status = smelt_array_create(SMELT_UINT8, shape, &bytes);
    if (status == SMELT_OK) {
        uint8_t *out = smelt_array_data(bytes);
        const float *reals = smelt_array_data(random);
        const uint8_t *any = smelt_array_data(random);
        for (int64_t i = 0; i < smelt_array_size(bytes); i++) {
            unsigned code = 0;
            for (int k = 0; real && k < in_byte; k++)
                code |= smelt_element_encode(element, (double)reals[i * in_byte + k]) << k * bits;
            out[i] = (uint8_t)(real ? code : element == SMELT_UE8M0 ? 124u + any[i] % 8u : any[i]);
        }
        status = smelt_array_copy(into, bytes);
        smelt_array_release(bytes);
    }
    smelt_array_release(random);
    return status;
}

static smelt_status random_plane(const smelt_tensor *tensor, smelt_tensor_plane plane, int element,
                                 uint64_t seed) {
    smelt_array *view, *random;
    smelt_status status = smelt_tensor_array(tensor, plane, &view);
    if (status != SMELT_OK) return status;
    if (is_format(element)) {
        status = random_codes(element, view, seed);
    } else {
        status = smelt_array_uniform((smelt_dtype)element, smelt_array_shape(view), seed, &random);
        if (status == SMELT_OK) {
            status = smelt_array_copy(view, random);
            smelt_array_release(random);
        }
    }
    smelt_array_release(view);
    return status;
}

bool tensor_value_make(const char *what, const struct tensor_value *value, bool contents,
                       smelt_tensor **tensor, int *status) {
    smelt_tensor *made = NULL;
    smelt_status result = smelt_tensor_create(&value->desc, &made);
    if (result == SMELT_OK && contents)
        result = random_plane(made, SMELT_PLANE_DATA, value->desc.element, value->seed);
    if (result == SMELT_OK && contents && value->desc.scales.element)
        result = random_plane(made, SMELT_PLANE_SCALES, value->desc.scales.element, value->seed + 1);
    if (result == SMELT_OK) {
        *tensor = made;
        return true;
    }
    smelt_tensor_release(made);
    *status = result == SMELT_ERROR_OUT_OF_MEMORY ? EXIT_ENVIRONMENT : EXIT_USAGE;
    return complain("%s: %s", what, smelt_error());
}

smelt_status tensor_value_array(const smelt_tensor *tensor, smelt_array **array) {
    smelt_tensor_desc desc;
    smelt_status status = smelt_tensor_describe(tensor, &desc);
    if (status != SMELT_OK) return status;
    return is_format(desc.element) || desc.scales.element
               ? smelt_tensor_dequantise(tensor, SMELT_FLOAT32, array)
               : smelt_tensor_array(tensor, SMELT_PLANE_DATA, array);
}

smelt_status tensor_value_clear(const smelt_tensor *tensor) {
    smelt_array *view;
    smelt_status status = smelt_tensor_array(tensor, SMELT_PLANE_DATA, &view);
    if (status != SMELT_OK) return status;
    status = smelt_array_fill(view, 0);
    smelt_array_release(view);
    return status;
}

/* A tensor with scales, or an array: a packed format's bytes as they are, which a kernel's tensor takes. */
static smelt_status read_safetensors(const struct array_value *value, smelt_buffer *buffer) {
    smelt_safetensors *file;
    smelt_safetensors_entry entry;
    smelt_status status = smelt_safetensors_open(value->path, &file);
    if (status != SMELT_OK) return status;
    if (value->kind == ARRAY_SCALED_SAFETENSORS) {
        status = smelt_safetensors_tensor(file, value->name, &buffer->tensor);
    } else {
        status = smelt_safetensors_find(file, value->name, &entry);
        if (status == SMELT_OK) buffer->array = smelt_array_retain(entry.array);
    }
    smelt_safetensors_release(file);
    return status;
}

bool buffer_value_make(const char *what, const struct array_value *value, bool contents, smelt_buffer *buffer,
                       int *status) {
    if (value->kind == ARRAY_TENSOR)
        return tensor_value_make(what, value->tensor, contents, &buffer->tensor, status);
    if (value->kind != ARRAY_SAFETENSORS && value->kind != ARRAY_SCALED_SAFETENSORS)
        return array_value_make(what, value, contents, &buffer->array, status);
    if (read_safetensors(value, buffer) == SMELT_OK) return true;
    *status = EXIT_USAGE;
    return complain("%s: %s", what, smelt_error());
}
