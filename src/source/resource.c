#include "source/resource.h"
#include "source/structure.h"

#include <string.h>

static const char *const types[] = {"texture1d",
                                    "texture1d_array",
                                    "texture2d",
                                    "texture2d_array",
                                    "texture2d_ms",
                                    "texture2d_ms_array",
                                    "texture3d",
                                    "texturecube",
                                    "texturecube_array",
                                    "texture_buffer",
                                    "depth2d",
                                    "depth2d_array",
                                    "depth2d_ms",
                                    "depth2d_ms_array",
                                    "depthcube",
                                    "depthcube_array",
                                    "sampler",
                                    "acceleration_structure",
                                    "primitive_acceleration_structure",
                                    "instance_acceleration_structure",
                                    "intersection_function_table",
                                    "visible_function_table",
                                    "imageblock",
                                    "command_buffer",
                                    "mesh_grid_properties",
                                    NULL};

static const struct {
    const char *begins, *instead;
} alternatives[] = {
    {"texture", "pass the texels in a buffer, as device float4 *"},
    {"depth", "pass the texels in a buffer, as device float *"},
    {"sampler", "pass the texels in a buffer, and interpolate in the kernel"},
    {"stage_in", "pass the data in a buffer, and read it at [[thread_position_in_grid]]"},
    {"visible_function_table", "select the function in the kernel, such as by a switch"},
    {"imageblock", "use threadgroup memory"},
};

const char *resource_alternative(const char *name) {
    for (size_t i = 0; i < sizeof alternatives / sizeof *alternatives; i++)
        if (strncmp(name, alternatives[i].begins, strlen(alternatives[i].begins)) == 0)
            return alternatives[i].instead;
    return NULL;
}

static const char *const attributes_of_others[] = {"texture", "sampler", "stage_in", "imageblock_data",
                                                   "payload", "color",   "patch",    NULL};

uint32_t resource_type(const struct tokens *tokens, uint32_t first, uint32_t last) {
    for (uint32_t i = first; i < last; i++) {
        uint32_t list = attribute_list_end(tokens, i);
        if (list) {
            i = list;
            continue;
        }
        /* A type is followed by its arguments or by a name; a name by neither. */
        bool type = token_is(tokens, i + 1, "<") || token_is_identifier(tokens, i + 1) ||
                    token_is(tokens, i + 1, "&") || token_is(tokens, i + 1, "*");
        if (type && token_is_one_of(tokens, i, types)) return i;
    }
    return NO_PLACE;
}

/* `array<tensor<…>, N> name` or `tensor<…> name[N]`. */
uint32_t resource_tensor_array(const struct tokens *tokens, uint32_t first, uint32_t last) {
    bool listed = false;
    for (uint32_t i = first; i < last; i++) {
        uint32_t end = token_is(tokens, i, "tensor") && token_is(tokens, i + 1, "<")
                           ? tokens_angle_end(tokens, i + 1, last)
                           : 0;
        bool many = end && end + 1 < last && token_is_identifier(tokens, end) &&
                    token_is(tokens, end + 1, "[") && !attribute_list_end(tokens, end + 1);
        if (end && (listed || many)) return i;
        listed |= token_is(tokens, i, "array") && token_is(tokens, i + 1, "<");
    }
    return NO_PLACE;
}

bool resource_attribute(const struct tokens *tokens, uint32_t name) {
    return token_is_one_of(tokens, name, attributes_of_others);
}
