/* The options that may be repeated: inputs, outputs, templates, buffers, bytes, constants. */
#include "options.h"
#include "picture.h"
#include "values.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "NAME=VALUE" → NAME in heap memory, VALUE in place. */
static char *split_name(const char *option, const char *text, const char **value) {
    const char *equals = strchr(text, '=');
    if (!equals || equals == text) {
        complain("%s '%s' is not of the form NAME=VALUE", option, text);
        return NULL;
    }
    *value = equals + 1;
    return strndup(text, (size_t)(equals - text));
}

bool option_add_input(struct options *o, const char *text) {
    const char *value;
    char what[300];
    if (o->input_count == SMELT_MAX_ARGUMENTS)
        return complain("more than %d inputs are given", SMELT_MAX_ARGUMENTS);
    char *name = split_name("-i", text, &value);
    if (!name) return false;
    snprintf(what, sizeof what, "input '%.200s'", name);
    o->input_names[o->input_count] = name;
    return array_value_parse(what, value, &o->input_values[o->input_count++]);
}

/* Files are .npy, as is one without an extension, or .png where the output is an image. */
static bool check_file(const char *what, const char *file, const struct output_option *out) {
    const char *slash = strrchr(file, '/'), *dot = strrchr(slash ? slash : file, '.');
    if (picture_is_named(file)) return picture_check(what, out->dtype, &out->shape);
    return !dot || strcmp(dot, ".npy") == 0 ||
           complain("%s: file '%s' ends in %s; expected .npy, or .png for an image", what, file, dot);
}

/* ELEMENT:DIMENSIONS[…][=FILE] of a tensor. Its values are an array of reals, the outermost dimension first.
 */
static bool parse_output_tensor(const char *what, const char *text, size_t length,
                                struct output_option *out) {
    out->tensor = malloc(sizeof *out->tensor);
    if (!out->tensor) return complain("out of memory");
    if (!tensor_value_parse(what, text, length, false, out->tensor)) return false;
    const smelt_tensor_desc *desc = &out->tensor->desc;
    out->dtype = smelt_dtype_bytes((smelt_dtype)desc->element) && !desc->scales.element
                     ? (smelt_dtype)desc->element
                     : SMELT_FLOAT32;
    out->shape.ndim = desc->ndim;
    for (int d = 0; d < desc->ndim; d++) out->shape.size[d] = desc->dimensions[desc->ndim - 1 - d];
    return true;
}

/* DTYPE:SHAPE[=FILE] behind the colon. */
static bool parse_output_array(const char *what, const char *text, size_t length, struct output_option *out) {
    const char *colon = memchr(text, ':', length);
    if (!colon) return complain("%s is '%s', expected DTYPE:SHAPE[=FILE]", what, text);
    return parse_dtype(what, text, (size_t)(colon - text), &out->dtype) &&
           parse_shape(what, colon + 1, length - (size_t)(colon + 1 - text), &out->shape);
}

/* `tensors`: the output may be one. */
static bool parse_output(const char *what, const char *text, bool tensors, struct output_option *out) {
    static const char tensor[] = "tensor:", scales[] = ":scales=";
    bool is_tensor = tensors && strncmp(text, tensor, sizeof tensor - 1) == 0;
    const char *inner = is_tensor ? strstr(text, scales) : NULL;
    const char *equals = strchr(inner ? inner + sizeof scales - 1 : text, '=');
    size_t length = equals ? (size_t)(equals - text) : strlen(text), head = sizeof tensor - 1;
    bool good = is_tensor ? parse_output_tensor(what, text + head, length - head, out)
                          : parse_output_array(what, text, length, out);
    if (good && equals && !equals[1]) good = complain("%s has an empty file name", what);
    if (good && equals) good = check_file(what, equals + 1, out);
    if (!good) {
        free(out->tensor); /* the output is not counted, so options_free does not find it */
        out->tensor = NULL;
        return false;
    }
    out->file = equals ? strdup(equals + 1) : NULL;
    return true;
}

/* NAME=FILE, of a stored graph, which has the dtype and shape. */
static bool add_graph_output(struct options *o, const char *text, const char *equals) {
    char what[300];
    struct output_option *out = &o->outputs[o->output_count];
    snprintf(what, sizeof what, "output '%.*s'", (int)(equals - text), text);
    if (!equals[1]) return complain("%s has an empty file name", what);
    out->name = strndup(text, (size_t)(equals - text));
    out->file = strdup(equals + 1);
    o->output_count++;
    return true;
}

bool option_add_output(struct options *o, const char *text) {
    char what[300];
    size_t head = strcspn(text, ":=");
    const char *colon = text[head] ? text + head : NULL;
    if (!colon || colon == text) return complain("-o '%s' is not of the form NAME:DTYPE:SHAPE[=FILE]", text);
    if (*colon == '=' && o->output_count < SMELT_MAX_ARGUMENTS) return add_graph_output(o, text, colon);
    if (o->output_count == SMELT_MAX_ARGUMENTS)
        return complain("more than %d outputs are given", SMELT_MAX_ARGUMENTS);
    struct output_option *out = &o->outputs[o->output_count];
    snprintf(what, sizeof what, "output '%.*s'", (int)(colon - text), text);
    if (!parse_output(what, colon + 1, false, out)) return false;
    out->name = strndup(text, (size_t)(colon - text));
    o->output_count++;
    return true;
}

static bool parse_index(const char *option, const char *text, size_t length, int64_t limit, int *index) {
    char digits[32];
    int64_t value;
    snprintf(digits, sizeof digits, "%.*s", (int)length, text);
    char what[64];
    snprintf(what, sizeof what, "the index of %s", option);
    if (!parse_integer(what, digits, 0, limit, &value)) return false;
    *index = (int)value;
    return true;
}

static bool is_given(const struct options *o, int index) {
    bool given = o->buffer_given[index] || o->bytes[index];
    for (int i = 0; i < o->output_count; i++) given |= !o->outputs[i].name && o->outputs[i].index == index;
    return given;
}

bool option_add_buffer(struct options *o, const char *text) {
    size_t head = strcspn(text, "=:");
    int index;
    char what[64];
    if (!text[head])
        return complain("-b '%s' is not of the form INDEX=VALUE or INDEX:out:DTYPE:SHAPE[=FILE]", text);
    if (!parse_index("-b", text, head, SMELT_MAX_BUFFERS - 1, &index)) return false;
    if (is_given(o, index)) return complain("buffer %d is given twice", index);
    snprintf(what, sizeof what, "buffer %d", index);
    if (text[head] == '=') {
        o->buffer_given[index] = true;
        return buffer_value_parse(what, text + head + 1, &o->buffer_values[index]);
    }
    if (strncmp(text + head, ":out:", 5) != 0)
        return complain("-b '%s' is not of the form INDEX=VALUE or INDEX:out:DTYPE:SHAPE[=FILE]", text);
    struct output_option *out = &o->outputs[o->output_count];
    if (!parse_output(what, text + head + 5, true, out)) return false;
    out->index = index;
    o->output_count++;
    return true;
}

bool option_add_bytes(struct options *o, const char *text) {
    size_t head = strcspn(text, "=");
    int index;
    char what[64];
    if (!text[head]) return complain("--bytes '%s' is not of the form INDEX=DTYPE:VALUE[,VALUE…]", text);
    if (!parse_index("--bytes", text, head, SMELT_MAX_BUFFERS - 1, &index)) return false;
    if (is_given(o, index)) return complain("buffer %d is given twice", index);
    snprintf(what, sizeof what, "bytes %d", index);
    if (!parse_bytes(what, text + head + 1, &o->bytes_dtypes[index], &o->bytes[index],
                     &o->buffers[index].size))
        return false;
    o->buffers[index].bytes = o->bytes[index];
    return true;
}

bool option_add_threadgroup_memory(struct options *o, const char *text) {
    size_t head = strcspn(text, "=");
    int index;
    int64_t bytes;
    if (!text[head]) return complain("--threadgroup-memory '%s' is not of the form INDEX=BYTES", text);
    if (!parse_index("--threadgroup-memory", text, head, SMELT_MAX_BUFFERS - 1, &index)) return false;
    if (!parse_integer("--threadgroup-memory", text + head + 1, 1, (int64_t)1 << 40, &bytes)) return false;
    if (o->threadgroup_memory[index]) return complain("threadgroup memory %d is given twice", index);
    o->threadgroup_memory[index] = (size_t)bytes;
    return true;
}

bool option_add_constant(struct options *o, const char *text) {
    size_t head = strcspn(text, "=");
    char what[64];
    if (!text[head] || !head) return complain("--constant '%s' is not of the form INDEX=VALUE", text);
    if (o->constant_count == SMELT_MAX_CONSTANTS - 1)
        return complain("more than %d function constants are given", SMELT_MAX_CONSTANTS - 1);
    smelt_constant *constant = &o->constants[o->constant_count];
    bool named = isalpha((unsigned char)*text) || *text == '_' || *text == ':';
    char *name = named ? strndup(text, head) : NULL;
    o->constant_names[o->constant_count] = name;
    constant->name = name;
    if (!named && !parse_index("--constant", text, head, 65535, &constant->index)) return false;
    snprintf(what, sizeof what, named ? "function constant '%.40s'" : "function constant %.40s",
             named ? name : text);
    if (!named) what[strcspn(what, "=")] = 0;
    for (int i = 0; i < o->constant_count; i++) {
        const char *other = o->constants[i].name;
        bool same = named && other ? strcmp(name, other) == 0
                                   : !named && !other && o->constants[i].index == constant->index;
        if (same) return complain("%s is given twice", what);
    }
    if (!parse_constant(what, text + head + 1, constant)) return false;
    o->constant_count++;
    return true;
}

bool option_add_template(struct options *o, const char *text) {
    const char *value;
    char what[300];
    if (o->template_count == SMELT_MAX_TEMPLATES - 1)
        return complain("more than %d template arguments are given", SMELT_MAX_TEMPLATES - 1);
    char *name = split_name("-t", text, &value);
    if (!name) return false;
    smelt_template *t = &o->templates[o->template_count];
    o->template_names[o->template_count++] = name;
    t->name = name;
    snprintf(what, sizeof what, "template '%.200s'", name);
    return parse_template(what, value, t);
}

bool option_add_include(struct options *o, const char *text) {
    if (o->include_count == SMELT_MAX_INCLUDE_PATHS - 1)
        return complain("more than %d include folders are given", SMELT_MAX_INCLUDE_PATHS - 1);
    o->include_paths[o->include_count++] = text;
    return true;
}

bool option_add_macro(struct options *o, const char *text) {
    if (o->macro_count == SMELT_MAX_ARGUMENTS - 1)
        return complain("more than %d macros are given", SMELT_MAX_ARGUMENTS - 1);
    o->macros[o->macro_count++] = text;
    return true;
}
