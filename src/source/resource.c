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

/* A tensor as a member, and not one made in the kernel. */
static uint32_t tensor_in(const struct tokens *tokens, uint32_t open) {
    uint32_t close = tokens->items[open].partner;
    for (uint32_t i = open + 1; i < close; i++) {
        uint32_t end = token_is(tokens, i, "tensor") && token_is(tokens, i + 1, "<")
                           ? tokens_angle_end(tokens, i + 1, close)
                           : 0;
        bool member = end && token_is_identifier(tokens, end);
        for (uint32_t k = i; member && k < end; k++) member = !token_is(tokens, k, "tensor_inline");
        if (member) return i;
        if (token_is(tokens, i, "{") || token_is(tokens, i, "(")) i = tokens->items[i].partner;
    }
    return NO_PLACE;
}

/* The brace of `struct name {`, or 0. */
static uint32_t structure_of(const struct tokens *tokens, uint32_t name) {
    const struct token *wanted = &tokens->items[name];
    for (uint32_t i = 0; i + 2 < tokens->count; i++) {
        const struct token *found = &tokens->items[i + 1];
        if ((token_is(tokens, i, "struct") || token_is(tokens, i, "class")) && token_is(tokens, i + 2, "{") &&
            found->length == wanted->length &&
            memcmp(tokens->text + found->start, tokens->text + wanted->start, wanted->length) == 0)
            return i + 2;
    }
    return 0;
}

/* The tensor in `array<tensor<…>, N> name` or `tensor<…> name[N]`, or NO_PLACE. */
static uint32_t tensor_in_array(const struct tokens *tokens, uint32_t first, uint32_t last) {
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

uint32_t resource_tensor_member(const struct tokens *tokens, uint32_t first, uint32_t last) {
    uint32_t in_array = tensor_in_array(tokens, first, last);
    if (in_array != NO_PLACE) return in_array;
    for (uint32_t i = first; i + 1 < last; i++) {
        bool referred = token_is(tokens, i + 1, "&") || token_is(tokens, i + 1, "*");
        uint32_t open = referred && token_is_identifier(tokens, i) ? structure_of(tokens, i) : 0;
        if (open) return tensor_in(tokens, open);
    }
    return NO_PLACE;
}

bool resource_attribute(const struct tokens *tokens, uint32_t name) {
    return token_is_one_of(tokens, name, attributes_of_others);
}
