#include "source/signature.h"
#include "array/dtype.h"
#include "source/attribute.h"
#include "source/balance.h"
#include "source/keyword.h"
#include "source/token.h"

#include <string.h>

/* Identifiers count wherever they occur, including the header: an unused parameter is harmless. */
struct words {
    struct tokens body, header;
};

static bool mentioned(const struct words *words, const char *name) {
    return tokens_contain(&words->body, name) || tokens_contain(&words->header, name);
}

static bool mentioned_with(const struct words *words, const char *name, const char *suffix) {
    struct text word = {0};
    text_addf(&word, "%s%s", name, suffix);
    bool found = mentioned(words, text_string(&word));
    text_free(&word);
    return found;
}

/* ---- Names that would be declared twice, or cannot be declared. */

/* The caller's name number `i` of inputs, outputs and templates, in this order; NULL: there are no more. */
static const char *name_of(const struct signature_request *request, int i, const char **what) {
    *what = "input";
    if (i < request->input_count) return request->inputs[i].name;
    i -= request->input_count;
    *what = "output";
    if (i < request->output_count) return request->outputs[i].name;
    i -= request->output_count;
    *what = "template";
    return i < request->template_count ? request->templates[i].name : NULL;
}

/* Of `other`, which has a name of its own: whether it is `input`'s shape, strides or number of dimensions. */
static bool is_described(const struct signature_input *input, const char *other) {
    size_t length = strlen(input->name);
    if (!input->ndim || strncmp(other, input->name, length) != 0) return false;
    const char *rest = other + length;
    return strcmp(rest, "_shape") == 0 || strcmp(rest, "_strides") == 0 || strcmp(rest, "_ndim") == 0;
}

static smelt_status check_name(const struct signature_request *request, const struct words *words, int i) {
    const char *what, *other_what, *name = name_of(request, i, &what);
    if (keyword_is(name))
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "kernel '%s': %s name '%s' is a keyword of Metal; expected another name", request->name,
                    what, name);
    for (int k = 0; k < i; k++)
        if (strcmp(name_of(request, k, &other_what), name) == 0)
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        "kernel '%s': %s name '%s' is also that of an %s; expected another name",
                        request->name, what, name, other_what);
    if (!mentioned(words, name)) return SMELT_OK;
    if (attribute_find(name, strlen(name)))
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "kernel '%s': %s name '%s' is that of an attribute of Metal, which the body gets by this "
                    "name; expected another name",
                    request->name, what, name);
    for (int k = 0; k < request->input_count; k++)
        if (is_described(&request->inputs[k], name))
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        "kernel '%s': %s name '%s' is that by which the body gets the %s of input '%s'; "
                        "expected another name",
                        request->name, what, name, name + strlen(request->inputs[k].name) + 1,
                        request->inputs[k].name);
    return SMELT_OK;
}

static smelt_status check_names(const struct signature_request *request, const struct words *words) {
    const char *what;
    smelt_status status = SMELT_OK;
    for (int i = 0; status == SMELT_OK && name_of(request, i, &what); i++)
        status = check_name(request, words, i);
    return status;
}

/* ---- The text. */

static void add_buffer(struct signature *out, enum argument_kind kind, int index, const char *type,
                       const char *name, const char *suffix) {
    text_addf(&out->text, "%s\n    %s%s%s [[buffer(%d)]]", out->argument_count ? "," : "", type, name, suffix,
              out->argument_count);
    out->arguments[out->argument_count++] = (struct argument){kind, index};
}

static void add_input(struct signature *out, const struct words *words, const struct signature_input *input,
                      int index) {
    struct text type = {0};
    const char *dtype = dtype_source_name(input->dtype);
    if (input->ndim == 0)
        text_addf(&type, "const constant %s& ", dtype);
    else
        text_addf(&type, "const %s %s* ", input->small ? "constant" : "device", dtype);
    add_buffer(out, ARGUMENT_DATA, index, text_string(&type), input->name, "");
    text_free(&type);
    if (input->ndim == 0) return;
    if (mentioned_with(words, input->name, "_shape"))
        add_buffer(out, ARGUMENT_SHAPE, index, "const constant int* ", input->name, "_shape");
    if (mentioned_with(words, input->name, "_strides"))
        add_buffer(out, ARGUMENT_STRIDES, index, "const constant int64_t* ", input->name, "_strides");
    if (mentioned_with(words, input->name, "_ndim"))
        add_buffer(out, ARGUMENT_NDIM, index, "const constant int& ", input->name, "_ndim");
}

static void add_output(struct signature *out, const struct signature_output *output, int index) {
    struct text type = {0};
    const char *dtype = dtype_source_name(output->dtype);
    text_addf(&type, output->atomic ? "device atomic<%s>* " : "device %s* ", dtype);
    add_buffer(out, ARGUMENT_OUTPUT, index, text_string(&type), output->name, "");
    text_free(&type);
}

static void add_template_header(struct signature *out, const struct signature_request *request) {
    for (int i = 0; i < request->template_count; i++) {
        const smelt_template *t = &request->templates[i];
        const char *kind = t->kind == SMELT_TEMPLATE_DTYPE ? "typename"
                           : t->kind == SMELT_TEMPLATE_INT ? "int"
                                                           : "bool";
        text_addf(&out->text, "%s%s %s", i ? ", " : "template <", kind, t->name);
    }
    if (request->template_count) text_add(&out->text, ">\n");
}

static void add_template_value(struct text *text, const smelt_template *t, bool for_name) {
    if (t->kind == SMELT_TEMPLATE_DTYPE)
        text_add(text, dtype_source_name(t->dtype));
    else if (t->kind == SMELT_TEMPLATE_BOOL)
        text_add(text, t->boolean ? "true" : "false");
    else if (for_name && t->integer < 0)
        text_addf(text, "m%lld", -(long long)t->integer);
    else
        text_addf(text, "%lld", (long long)t->integer);
}

static void add_instantiation(struct signature *out, const struct signature_request *request) {
    struct text arguments = {0};
    for (int i = 0; i < request->template_count; i++) {
        if (i) text_add(&arguments, ", ");
        add_template_value(&arguments, &request->templates[i], false);
    }
    text_addf(
        &out->text,
        "template [[host_name(\"%s\")]] [[kernel]] decltype(custom_kernel_%s<%s>) custom_kernel_%s<%s>;\n",
        text_string(&out->host_name), request->name, text_string(&arguments), request->name,
        text_string(&arguments));
    text_free(&arguments);
}

static void add_kernel(struct signature *out, const struct signature_request *request,
                       const struct words *words) {
    text_addf(&out->host_name, "custom_kernel_%s", request->name);
    for (int i = 0; i < request->template_count; i++) {
        text_add(&out->host_name, "_");
        add_template_value(&out->host_name, &request->templates[i], true);
    }
    text_add(&out->text, "#line 1 \"" SIGNATURE_LABEL "\"\n");
    if (request->header) {
        text_addf(&out->text, "#line 1 \"%s\"\n%s\n", request->header_label,
                  tokens_behind_mark(request->header));
        text_add(&out->text, "#line 1 \"" SIGNATURE_LABEL "\"\n");
    }
    add_template_header(out, request);
    text_addf(&out->text, "[[kernel]] void custom_kernel_%s(", request->name);
    for (int i = 0; i < request->input_count; i++) add_input(out, words, &request->inputs[i], i);
    for (int i = 0; i < request->output_count; i++) add_output(out, &request->outputs[i], i);
    for (const struct attribute *a = attributes; a->name; a++)
        if (mentioned(words, a->name))
            text_addf(&out->text, ",\n    %s %s [[%s]]", a->dimensions == 3 ? "uint3" : "uint", a->name,
                      a->name);
    text_addf(&out->text, ") {\n#line 1 \"%s\"\n%s\n#line 1 \"" SIGNATURE_LABEL "\"\n}\n",
              request->body_label, tokens_behind_mark(request->body));
    if (request->template_count) add_instantiation(out, request);
}

smelt_status signature_generate(const struct signature_request *request, struct signature *signature) {
    struct signature out = {0};
    struct words words = {0};
    const char *header = request->header ? request->header : "";
    smelt_status status = tokens_read(request->body, strlen(request->body), &words.body);
    if (status == SMELT_OK) status = tokens_read(header, strlen(header), &words.header);
    if (status == SMELT_OK) status = check_names(request, &words);
    if (status == SMELT_OK) {
        add_kernel(&out, request, &words);
        if (out.text.failed || out.host_name.failed)
            status = fail(SMELT_ERROR_OUT_OF_MEMORY, "the kernel's text does not fit in memory");
    }
    tokens_free(&words.body);
    tokens_free(&words.header);
    if (status != SMELT_OK) {
        signature_free(&out);
        return status;
    }
    *signature = out;
    return SMELT_OK;
}

void signature_free(struct signature *signature) {
    text_free(&signature->text);
    text_free(&signature->host_name);
}
