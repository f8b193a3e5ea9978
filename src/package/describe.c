#include "package/describe.h"
#include "smelt/tensor.h"

static void describe_gpu_shape(const struct code_shape *shape, struct text *out) {
    int inlined = 0;
    for (int i = 0; i < SHAPE_MAX_INLINED; i++) inlined += shape->inlined[i] != 0;
    if (!shape->small) text_add(out, "buffers of any size, ");
    if (!shape->aligned) text_add(out, "buffers at any address, ");
    if (shape->aligned && !shape->distinct) text_add(out, "buffers that may overlap, ");
    if (shape->coarse) text_add(out, "large grids of one dimension, ");
    if (shape->joined) text_add(out, "threadgroups of one thread, ");
    if (shape->folded) text_add(out, "more threadgroups than the hardware's, ");
    if (shape->polled) text_add(out, "time-outs, ");
    if (inlined) text_addf(out, "%d argument%s as bytes, ", inlined, inlined == 1 ? "" : "s");
    if (shape->size[0])
        text_addf(out, "threadgroups of %u x %u x %u", shape->size[0], shape->size[1], shape->size[2]);
    else
        text_addf(out, "%sthreadgroups%s of up to %u threads", shape->masked ? "any " : "",
                  shape->size[1] ? " in a line" : "", shape->most_threads);
}

void describe_shape(const struct code_shape *shape, struct text *out) {
    if (engine_traits(shape->engine)->is_gpu) {
        describe_gpu_shape(shape, out);
        return;
    }
    if (!shape->small) text_add(out, "buffers of any size, ");
    if (shape->size[0])
        text_addf(out, "threadgroups of %u x %u x %u", shape->size[0], shape->size[1], shape->size[2]);
    else
        text_addf(out, "%sthreadgroups%s", shape->masked ? "any " : "",
                  shape->size[1]  ? " in a line"
                  : shape->rows   ? " with rows of whole simdgroups"
                  : shape->masked ? ""
                                  : " of whole simdgroups");
}

static void describe_value(const smelt_constant *c, struct text *out) {
    bool real = c->dtype == SMELT_FLOAT16 || c->dtype == SMELT_BFLOAT16 || c->dtype == SMELT_FLOAT32 ||
                c->dtype == SMELT_FLOAT64;
    int count = c->count > 1 ? c->count : 1;
    for (int i = 0; i < count; i++) {
        double number = count > 1 ? c->value.reals[i] : c->value.real;
        int64_t integer = count > 1 ? c->value.integers[i] : c->value.integer;
        if (i) text_add(out, ", ");
        if (real)
            text_addf(out, "%.9g", number);
        else if (c->dtype == SMELT_BOOL)
            text_add(out, integer ? "true" : "false");
        else if (c->dtype == SMELT_UINT64)
            text_addf(out, "%llu", (unsigned long long)integer);
        else
            text_addf(out, "%lld", (long long)integer);
    }
}

static void describe_tensor(const struct tensor_binding *tensor, struct text *out) {
    text_addf(out, ", tensor of %s, extents", smelt_element_name(tensor->element));
    for (int d = 0; d < tensor->rank; d++) {
        text_add(out, d ? " x " : " ");
        if (tensor->extents[d] < 0)
            text_add(out, "any");
        else
            text_addf(out, "%lld", (long long)tensor->extents[d]);
    }
    if (!tensor->scales) return;
    text_addf(out, ", scales of %s per", smelt_element_name(tensor->scales));
    for (int d = 0; d < tensor->rank; d++)
        text_addf(out, "%s %lld", d ? " x" : "", (long long)tensor->blocks[d]);
}

/* `image`: of any code of the entry; empty if it has none. */
static void describe_parameter(const struct parameter *p, int number, const struct image *image,
                               struct text *out) {
    if (p->kind == PARAMETER_ATTRIBUTE)
        text_addf(out, "  %s", p->attribute ? p->attribute : "?");
    else
        text_addf(out, "  %s %s", p->kind == PARAMETER_THREADGROUP ? "threadgroup memory" : "buffer",
                  p->index ? p->index : "?");
    if (*p->name) text_addf(out, " '%s'", p->name);
    for (int i = 0; i < image->tensor_count; i++)
        if (image->tensors[i].parameter == number) describe_tensor(&image->tensors[i], out);
    if (p->guard) text_addf(out, ", if %s", p->guard);
    text_add(out, "\n");
}

static void describe_entry(const struct package *package, const struct package_entry *e, struct text *out) {
    text_addf(out, "entry %s: %zu bytes of bitcode, %d codes\n", e->entry.host_name, e->bitcode.size,
              e->code_count);
    struct image image = {0};
    if (e->code_count) (void)image_read(e->codes[0].image.data, e->codes[0].image.size, &image);
    for (int i = 0; i < e->entry.parameter_count; i++)
        describe_parameter(&e->entry.parameters[i], i, &image, out);
    image_free(&image);
    if (e->max_threads) text_addf(out, "  max_total_threads_per_threadgroup %u\n", e->max_threads);
    if (e->required_threads[0])
        text_addf(out, "  required_threads_per_threadgroup %u x %u x %u\n", e->required_threads[0],
                  e->required_threads[1], e->required_threads[2]);
    for (int i = 0; i < e->constant_count; i++) {
        const struct package_constant *c = &e->constants[i];
        text_addf(out, "  function constant %d '%s', %s: ", c->value.index, c->name,
                  smelt_dtype_name(c->type));
        if (c->set)
            describe_value(&c->value, out);
        else
            text_add(out, c->required ? "must be given" : "may be given");
        text_add(out, "\n");
    }
    for (int i = 0; i < e->code_count; i++) {
        const struct package_code *c = &e->codes[i];
        text_addf(out, "  code for %s, %zu bytes: ", package->targets[c->target].name, c->image.size);
        bool serves_all = image_serves_all(c->engine, &c->shape);
        if (engine_traits(c->engine)->serves_all)
            text_addf(out, "the %s engine%s", engine_traits(c->engine)->name, serves_all ? "" : ", ");
        if (!serves_all) describe_shape(&c->shape, out);
        text_add(out, "\n");
    }
}

void describe_package(const struct package *package, int entry, struct text *out) {
    static const char *const modes[] = {"safe", "relaxed", "fast"};
    text_addf(out, "package of %s: smelt %s, LLVM %s, Metal %u.%u, math %s\n", package->source_name,
              package->smelt_version, package->llvm_version, package->metal_version / 100,
              package->metal_version / 10 % 10, modes[package->math]);
    for (int i = 0; i < package->target_count; i++) {
        const struct package_target *t = &package->targets[i];
        text_addf(out, "target %s%s%s\n", t->name, *t->features ? ": needs " : "", t->features);
    }
    for (int i = 0; i < package->entry_count; i++)
        if (entry < 0 || entry == i) describe_entry(package, &package->entries[i], out);
}
