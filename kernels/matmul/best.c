#include "kernels/matmul/best.h"
#include "kernels/kernel_text.h"
#include "kernels/shipped.h"

#include <stdint.h>
#include <stdio.h>

static int64_t pieces(int64_t size, int64_t of) {
    return (size + of - 1) / of;
}

static bool is_float(const struct matmul_desc *desc) {
    return smelt_array_dtype(desc->a) == SMELT_FLOAT32;
}

/* ---- Aligned rows for tensor maps. */

#define ROW_ELEMENTS 8                /* of 16 bits: rows begin at multiples of 16 bytes */
#define LEAST_DEPTH 256               /* shorter sums do not use tensor maps (mpp_warpgroup.h) … */
#define LEAST_WORTH (512 * 512 * 256) /* … and fewer multiply-adds are not worth two launches more */

/* *matrix has dense rows of *line elements. It becomes a copy with longer rows, which the caller releases;
 * *line and *batch become those of the copy. */
static smelt_status lengthen_rows(const struct matmul_desc *desc, int64_t *line, int64_t *batch,
                                  smelt_array **matrix) {
    int64_t rows = smelt_array_size(*matrix) / *line;
    int32_t size[2] = {(int32_t)*line, (int32_t)(pieces(*line, ROW_ELEMENTS) * ROW_ELEMENTS)};
    smelt_array *longer;
    smelt_function *function;
    smelt_status status = smelt_array_create_on(desc->device, smelt_array_dtype(*matrix),
                                                (smelt_shape){.ndim = 2, .size = {rows, size[1]}}, &longer);
    if (status != SMELT_OK) return status;
    status = shipped_entry(kernel_text_best, "best_rows", SMELT_MATH_SAFE, &function);
    if (status == SMELT_OK)
        status = smelt_function_run(
            function,
            &(smelt_dispatch_desc){
                .buffers = {{.array = *matrix}, {.array = longer}, {.bytes = size, .size = sizeof size}},
                .grid = {size[1] / ROW_ELEMENTS, rows},
                .threadgroup = {32, 8},
                .device = desc->device,
                .stream = desc->stream});
    if (status != SMELT_OK) {
        smelt_array_release(longer);
        return status;
    }
    *batch = *batch / *line * size[1];
    *line = size[1];
    *matrix = longer;
    return SMELT_OK;
}

static bool needs_rows(const struct matmul_desc *desc, const struct matmul_sizes *sizes, int64_t line) {
    return !is_float(desc) && line % ROW_ELEMENTS && sizes->k >= LEAST_DEPTH &&
           sizes->m * sizes->n * sizes->products >= LEAST_WORTH / sizes->k;
}

/* ---- A form's kernel. */

/* The rows and columns of a float tile that one simdgroup computes. */
static void float_parts(const struct matmul_form *form, int sides[2]) {
    int64_t elements = form->rows * form->columns / (form->threads / 32);
    sides[0] = elements >= 2048 ? 64 : 32;
    sides[1] = (int)(elements / sides[0]);
}

/* The parameters of BEST_FORM are those of the templates in best.metal, best_tiles.metal and
 * best_warpgroups.metal. cluster: the threadgroups of a cluster of best_warpgroups.metal; 0: the kernel is in
 * another file. */
static smelt_status find_kernel(const struct matmul_desc *desc, const struct matmul_form *form,
                                int64_t cluster, smelt_function **function) {
    const char *type = matmul_type(smelt_array_dtype(desc->a)), *flags[] = {"false", "true"};
    const char *output = form->parts > 1 ? "float" : type;
    char name[64], kind[32] = "", last[16] = "", parameters[128], defines[256];
    int rows = (int)form->rows, columns = (int)form->columns, threads = (int)form->threads;
    if (cluster) {
        snprintf(kind, sizeof kind, "_warpgroups_%d", (int)cluster);
        snprintf(last, sizeof last, ", %d", (int)cluster);
    }
    snprintf(name, sizeof name, "best_%s_%s_%d_%d_%d%s%s%s", type, output, rows, columns, threads, kind,
             desc->a_transposed ? "_a" : "", desc->b_transposed ? "_b" : "");
    if (is_float(desc)) {
        int sides[2];
        float_parts(form, sides);
        snprintf(parameters, sizeof parameters, "%d, %d, %d, %d", rows, columns, sides[0], sides[1]);
    } else {
        snprintf(parameters, sizeof parameters, "%s, %s, %d, %d, %d", type, output, rows, columns,
                 threads / 32);
    }
    snprintf(defines, sizeof defines, "#define BEST_NAME \"%s\"\n#define BEST_FORM %s, %s, %s%s\n", name,
             parameters, flags[desc->a_transposed], flags[desc->b_transposed], last);
    const char *text = is_float(desc) ? kernel_text_best_tiles
                       : cluster      ? kernel_text_best_warpgroups
                                      : kernel_text_best;
    return shipped_variant(defines, text, name, SMELT_MATH_SAFE, function);
}

/* ---- Threadgroups that compute one tile after the other (best_warpgroups.metal). */

#define STAYING_FORM 256                     /* threads of its forms, which multiply … */
#define STAYING_THREADS (STAYING_FORM + 128) /* … and those that copy */

/* The number of clusters that cover the result, with one tile per threadgroup. A cluster's tiles are next to
 * each other if they have more rows than columns, otherwise below each other. */
static int64_t tiles_of(const struct matmul_sizes *sizes, const struct matmul_form *form, int64_t cluster) {
    int64_t rows = form->rows * (form->rows > form->columns ? 1 : cluster);
    int64_t columns = form->columns * (form->rows > form->columns ? cluster : 1);
    return pieces(sizes->n, columns) * pieces(sizes->m, rows) * sizes->products * form->parts;
}

/* The threadgroups of a cluster: 2, except where an odd number of tiles would then take longer. */
static int64_t cluster_of(const struct matmul_sizes *sizes, const struct matmul_form *form,
                          int64_t multiprocessors) {
    int64_t clusters = multiprocessors / 2;
    return clusters && pieces(tiles_of(sizes, form, 2), clusters) <=
                           pieces(tiles_of(sizes, form, 1), multiprocessors)
               ? 2
               : 1;
}

/* Whether the matrix and its rows begin at multiples of 16 bytes. */
static bool is_mappable(const smelt_array *matrix, int64_t line, int64_t batch) {
    return (uintptr_t)smelt_array_data(matrix) % 16 == 0 && line % ROW_ELEMENTS == 0 &&
           batch % ROW_ELEMENTS == 0;
}

static bool stays(const struct matmul_desc *desc, const struct matmul_job *job,
                  const struct matmul_form *form) {
    return desc->multiprocessors && !is_float(desc) && form->threads == STAYING_FORM &&
           job->sizes.k >= LEAST_DEPTH && tiles_of(&job->sizes, form, 1) <= INT32_MAX &&
           is_mappable(desc->a, job->a_line, job->a_batch) && is_mappable(desc->b, job->b_line, job->b_batch);
}

static smelt_status run_staying(const struct matmul_desc *desc, const struct matmul_job *job,
                                const struct matmul_form *form, int64_t depth) {
    const struct matmul_sizes *sizes = &job->sizes;
    int32_t size[4] = {(int32_t)sizes->m, (int32_t)sizes->n, (int32_t)sizes->k, (int32_t)depth};
    int32_t lines[2] = {(int32_t)job->a_line, (int32_t)job->b_line};
    int64_t batches[4] = {job->a_batch, job->b_batch, sizes->products};
    int64_t cluster = cluster_of(sizes, form, desc->multiprocessors), tiles = tiles_of(sizes, form, cluster);
    int64_t clusters = desc->multiprocessors / cluster;
    smelt_function *function;
    smelt_status status = find_kernel(desc, form, cluster, &function);
    if (status != SMELT_OK) return status;
    return smelt_function_run(
        function, &(smelt_dispatch_desc){.buffers = {{.array = desc->a},
                                                     {.array = desc->b},
                                                     {.array = desc->c},
                                                     {.bytes = size, .size = sizeof size},
                                                     {.bytes = lines, .size = sizeof lines},
                                                     {.bytes = batches, .size = sizeof batches}},
                                         .groups = {(tiles < clusters ? tiles : clusters) * cluster, 1, 1},
                                         .threadgroup = {STAYING_THREADS},
                                         .device = desc->device,
                                         .stream = desc->stream,
                                         .info = desc->info});
}

static smelt_status run(const struct matmul_desc *desc, const struct matmul_job *job,
                        const struct matmul_form *form, int64_t depth) {
    const struct matmul_sizes *sizes = &job->sizes;
    int32_t size[4] = {(int32_t)sizes->m, (int32_t)sizes->n, (int32_t)sizes->k, (int32_t)depth};
    int32_t lines[2] = {(int32_t)job->a_line, (int32_t)job->b_line};
    int64_t batches[2] = {job->a_batch, job->b_batch};
    if (stays(desc, job, form)) return run_staying(desc, job, form, depth);
    smelt_function *function;
    smelt_status status = find_kernel(desc, form, 0, &function);
    if (status != SMELT_OK) return status;
    smelt_dispatch_desc dispatch = {.buffers = {{.array = desc->a},
                                                {.array = desc->b},
                                                {.array = desc->c},
                                                {.bytes = size, .size = sizeof size}},
                                    .groups = {pieces(sizes->n, form->columns), pieces(sizes->m, form->rows),
                                               sizes->products * form->parts},
                                    .threadgroup = {form->threads},
                                    .device = desc->device,
                                    .stream = desc->stream,
                                    .info = desc->info};
    smelt_buffer *next = &dispatch.buffers[4];
    if (!is_float(desc)) *next++ = (smelt_buffer){.bytes = lines, .size = sizeof lines};
    *next = (smelt_buffer){.bytes = batches, .size = sizeof batches};
    return smelt_function_run(function, &dispatch);
}

/* ---- K in parts. */

/* C = the sums of `count` matrices per product. */
static smelt_status add_parts(const struct matmul_desc *desc, const struct matmul_sizes *sizes, int64_t count,
                              smelt_array *parts) {
    int64_t size[2] = {sizes->m * sizes->n, count};
    char name[32];
    snprintf(name, sizeof name, "best_sum_%s", matmul_type(smelt_array_dtype(desc->a)));
    smelt_function *function;
    smelt_status status = shipped_entry(kernel_text_best, name, SMELT_MATH_SAFE, &function);
    if (status != SMELT_OK) return status;
    return smelt_function_run(
        function, &(smelt_dispatch_desc){
                      .buffers = {{.array = parts}, {.array = desc->c}, {.bytes = size, .size = sizeof size}},
                      .grid = {pieces(size[0], 4), sizes->products},
                      .threadgroup = {128, 1},
                      .device = desc->device,
                      .stream = desc->stream});
}

static smelt_status run_parts(const struct matmul_desc *desc, const struct matmul_job *job,
                              const struct matmul_form *form, int64_t depth) {
    const struct matmul_sizes *sizes = &job->sizes;
    struct matmul_desc own = *desc;
    smelt_status status = smelt_array_create_on(
        desc->device, SMELT_FLOAT32,
        (smelt_shape){.ndim = 3, .size = {sizes->products * form->parts, sizes->m, sizes->n}}, &own.c);
    if (status != SMELT_OK) return status;
    status = run(&own, job, form, depth);
    if (status == SMELT_OK) status = add_parts(desc, sizes, form->parts, own.c);
    smelt_array_release(own.c);
    return status;
}

smelt_status matmul_best_run(const struct matmul_desc *desc, struct matmul_job *job) {
    struct matmul_desc own = *desc;
    smelt_dtype dtype = smelt_array_dtype(desc->a);
    struct matmul_form form = desc->form ? *desc->form : matmul_form_choose(dtype, &job->sizes);
    int64_t depth = matmul_form_depth(dtype, job->sizes.k, &form);
    smelt_status status = SMELT_OK;
    if (needs_rows(desc, &job->sizes, job->a_line))
        status = lengthen_rows(desc, &job->a_line, &job->a_batch, &own.a);
    if (status == SMELT_OK && needs_rows(desc, &job->sizes, job->b_line))
        status = lengthen_rows(desc, &job->b_line, &job->b_batch, &own.b);
    if (status == SMELT_OK)
        status = form.parts > 1 ? run_parts(&own, job, &form, depth) : run(&own, job, &form, depth);
    if (own.a != desc->a) smelt_array_release(own.a);
    if (own.b != desc->b) smelt_array_release(own.b);
    return status;
}
