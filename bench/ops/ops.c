/* smelt bench ops: operations on arrays beside what they cannot beat, a copy of the bytes they read and write
 * or the product of matrices of as many operations, and beside PyTorch, on the CPU or a GPU. Each is compared
 * with float64 on small arrays first. */
#include "bench/cpu/cpu.h"
#include "bench/cpu/memory.h"
#include "bench/kernel_text.h"
#include "bench/peers.h"

#include <smelt/nn.h>
#include <smelt/shipped.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#define COPY "floor: a copy of its bytes"
#define PRODUCT "floor: matmul of its operations"
#define PYTORCH "PyTorch float32"
#define SMELT "smelt"
#define ROUNDS 9
#define GPU_RUNS 10 /* that one wait is for */
#define MOST_INPUTS 5

/* One job: an operation, the shapes of its inputs, and its work for them. */
struct job {
    const char *name;
    smelt_apply_desc desc;
    int inputs;
    smelt_shape shapes[MOST_INPUTS], small[MOST_INPUTS];
    double flops;         /* per element of input 0; 0: bounded by bytes */
    struct bench_bar bar; /* to the floor, or with `to_peer` to PyTorch */
    bool to_peer;
    smelt_status (*run)(const struct job *job, smelt_array *const *inputs,
                        smelt_array **out); /* NULL: smelt_apply */
};

/* Replaces the array by itself on the device; releases it on failure. */
static smelt_status move(smelt_array **array, const char *device) {
    smelt_array *here = NULL;
    smelt_status status = smelt_array_to(*array, device, NULL, &here);
    smelt_array_release(*array);
    *array = here;
    return status;
}

static smelt_status apply(const struct job *job, smelt_array *const *inputs, smelt_array **out) {
    smelt_apply_desc desc = job->desc;
    memcpy(desc.inputs, inputs, (size_t)job->inputs * sizeof *inputs);
    return smelt_apply(&desc, out);
}

/* A view of the array's transpose, made contiguous. */
static smelt_status turn(const struct job *job, smelt_array *const *inputs, smelt_array **out) {
    smelt_array *view;
    (void)job;
    smelt_status status = smelt_apply(
        &(smelt_apply_desc){.operation = SMELT_OPERATION_TRANSPOSE, .inputs = {inputs[0]}}, &view);
    if (status != SMELT_OK) return status;
    status = smelt_apply(&(smelt_apply_desc){.operation = SMELT_OPERATION_CONTIGUOUS, .inputs = {view}}, out);
    smelt_array_release(view);
    return status;
}

/* Keys are small, so that states stay bounded; gates are below 0. */
static smelt_status delta(const struct job *job, smelt_array *const *inputs, smelt_array **out) {
    smelt_array *states;
    (void)job;
    smelt_status status = smelt_gated_delta(
        &(smelt_gated_delta_desc){
            .q = inputs[0], .k = inputs[1], .v = inputs[2], .g = inputs[3], .beta = inputs[4]},
        out, &states);
    if (status == SMELT_OK) smelt_array_release(states);
    return status;
}

/* As many rows of numbers as inputs[0] has elements in one. */
static smelt_status draw(const struct job *job, smelt_array *const *inputs, smelt_array **out) {
    int64_t side = smelt_array_size(inputs[0]);
    smelt_shape shape = {.ndim = 2, .size = {side, side}};
    smelt_dtype dtype = smelt_array_dtype(inputs[0]);
    smelt_array *key;
    smelt_status status = smelt_random_key(7, &key);
    if (status == SMELT_OK) status = move(&key, smelt_array_device(inputs[0]));
    if (status != SMELT_OK) return status;
    status = job->desc.reverse ? smelt_random_normal(key, dtype, shape, out)
                               : smelt_random_uniform(key, dtype, shape, 0, 1, out);
    smelt_array_release(key);
    return status;
}

#define PACKED_BITS 4
#define PACKED_GROUP 64

/* The scales, after all is packed; of float64 the same by plain loops, without the rest. */
static smelt_status pack(const struct job *job, smelt_array *const *inputs, smelt_array **out) {
    smelt_array *words, *biases;
    (void)job;
    if (smelt_array_dtype(inputs[0]) != SMELT_FLOAT64) {
        smelt_quantize_desc desc = {.x = inputs[0], .bits = PACKED_BITS, .group_size = PACKED_GROUP};
        smelt_status status = smelt_quantize(&desc, &words, out, &biases);
        if (status != SMELT_OK) return status;
        smelt_array_release(words);
        smelt_array_release(biases);
        return SMELT_OK;
    }
    smelt_shape shape = smelt_array_shape(inputs[0]);
    shape.size[1] /= PACKED_GROUP;
    smelt_status status = smelt_array_create(SMELT_FLOAT64, shape, out);
    if (status != SMELT_OK) return status;
    const double *x = smelt_array_data(inputs[0]);
    double *scales = smelt_array_data(*out);
    for (int64_t i = 0; i < smelt_array_size(*out); i++, x += PACKED_GROUP) {
        double low = x[0], high = x[0];
        for (int j = 1; j < PACKED_GROUP; j++) low = fmin(low, x[j]), high = fmax(high, x[j]);
        double edge = -low > high ? low : high, step = (high - low) / ((1 << PACKED_BITS) - 1);
        scales[i] = edge / rint(edge / (edge == low ? step : -step));
    }
    return SMELT_OK;
}

/* The bits of inputs[0] as words. */
static smelt_status unpack(const struct job *job, smelt_array *const *inputs, smelt_array **out) {
    smelt_array *single, *words = NULL;
    (void)job;
    smelt_status status = smelt_array_convert(inputs[0], SMELT_FLOAT32, &single);
    if (status != SMELT_OK) return status;
    status = smelt_array_reinterpret(single, SMELT_UINT32, &words);
    if (status == SMELT_OK)
        status = smelt_dequantize(words, inputs[1], inputs[2], PACKED_BITS, PACKED_GROUP,
                                  SMELT_QUANTIZED_AFFINE, SMELT_NO_DTYPE, out);
    smelt_array_release(words);
    smelt_array_release(single);
    return status;
}

#define OF(...)                                                                             \
    {                                                                                       \
        .ndim = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .size = { __VA_ARGS__ } \
    }
#define SQUARE .shapes = {OF(4096, 4096)}, .small = {OF(64, 256)}
#define SPEED(least) {BENCH_SPEED_AT_LEAST, least}
#define LAST .axes = {-1}, .axis_count = 1

/* clang-format off */
/* X(NAME, …) for each job: the members of its struct job. */
#define JOBS(X) \
    X("softmax", {.operation = SMELT_OPERATION_SOFTMAX, LAST}, 1, SQUARE, .bar = {BENCH_TIME_AT_MOST, 1.25}, .to_peer = true) \
    X("log-softmax", {.operation = SMELT_OPERATION_LOG_SOFTMAX, LAST}, 1, SQUARE) \
    X("layer-norm", {.operation = SMELT_OPERATION_LAYER_NORM, .numbers = {1e-5}}, 3, \
     .shapes = {OF(4096, 4096), OF(4096), OF(4096)}, .small = {OF(64, 256), OF(256), OF(256)}, .bar = SPEED(0.85)) \
    X("rms-norm", {.operation = SMELT_OPERATION_RMS_NORM, .numbers = {1e-5}}, 2, \
     .shapes = {OF(4096, 4096), OF(4096)}, .small = {OF(64, 256), OF(256)}, .bar = SPEED(0.85)) \
    X("rope", {.operation = SMELT_OPERATION_ROPE, .starts = {32}, .numbers = {10000, 1}}, 1, \
     .shapes = {OF(4, 8, 1024, 128)}, .small = {OF(2, 2, 16, 32)}) \
    X("transpose", {.operation = SMELT_OPERATION_CONTIGUOUS}, 1, SQUARE, .run = turn) \
    X("sum", {.operation = SMELT_OPERATION_SUM, LAST}, 1, SQUARE) \
    X("cumsum", {.operation = SMELT_OPERATION_CUMSUM, LAST}, 1, SQUARE) \
    X("sort", {.operation = SMELT_OPERATION_SORT, LAST}, 1, .shapes = {OF(256, 16384)}, .small = {OF(4, 256)}) \
    X("fft", {.operation = SMELT_OPERATION_FFT, LAST}, 1, .shapes = {OF(1024, 1024)}, .small = {OF(8, 64)}) \
    X("hadamard", {.operation = SMELT_OPERATION_HADAMARD_TRANSFORM, .numbers = {0.03125}}, 1, \
     .shapes = {OF(4096, 1024)}, .small = {OF(8, 64)}) \
    X("conv2d", {.operation = SMELT_OPERATION_CONV_GENERAL, .starts = {1, 1}, .stops = {1, 1}}, 2, \
     .shapes = {OF(8, 56, 56, 64), OF(64, 3, 3, 64)}, .small = {OF(2, 8, 8, 8), OF(8, 3, 3, 8)}, .flops = 2.0 * 9 * 64) \
    X("depthwise", {.operation = SMELT_OPERATION_CONV_GENERAL, .starts = {1, 1}, .stops = {1, 1}, .offset = 64}, 2, \
     .shapes = {OF(8, 56, 56, 64), OF(64, 3, 3, 1)}, .small = {OF(2, 8, 8, 64), OF(64, 3, 3, 1)}) \
    X("matmul", {.operation = SMELT_OPERATION_MATMUL}, 2, \
     .shapes = {OF(1024, 1024), OF(1024, 1024)}, .small = {OF(64, 64), OF(64, 64)}, .flops = 2.0 * 1024) \
    X("grid-sample", {.operation = SMELT_OPERATION_GRID_SAMPLE}, 2, \
     .shapes = {OF(8, 128, 128, 64), OF(8, 64, 64, 2)}, .small = {OF(2, 8, 8, 8), OF(2, 4, 4, 2)}) \
    X("chunk-inverse", {.operation = SMELT_OPERATION_CHUNK_INVERSE}, 1, \
     .shapes = {OF(2, 2048, 8, 64)}, .small = {OF(1, 32, 2, 16)}) \
    X("gated-delta", {.operation = SMELT_OPERATION_NONE}, 5, \
     .shapes = {OF(1, 1024, 8, 64), OF(1, 1024, 8, 64), OF(1, 1024, 8, 64), OF(1, 1024, 8), OF(1, 1024, 8)}, \
     .small = {OF(1, 20, 2, 8), OF(1, 20, 2, 8), OF(1, 20, 2, 4), OF(1, 20, 2), OF(1, 20, 2)}, .run = delta) \
    X("random-uniform", {0}, 1, .shapes = {OF(4096)}, .small = {OF(64)}, .run = draw) \
    X("random-normal", {.reverse = true}, 1, .shapes = {OF(4096)}, .small = {OF(64)}, .run = draw) \
    X("quantize", {0}, 1, SQUARE, .run = pack) \
    X("dequantize", {0}, 3, .shapes = {OF(4096, 512), OF(4096, 64), OF(4096, 64)}, \
     .small = {OF(64, 32), OF(64, 4), OF(64, 4)}, .run = unpack) \
    X("softmax-row", {.operation = SMELT_OPERATION_SOFTMAX, LAST}, 1, .shapes = {OF(1, 16777216)}, .small = {OF(1, 16384)}) \
    X("sum-row", {.operation = SMELT_OPERATION_SUM, LAST}, 1, .shapes = {OF(1, 16777216)}, .small = {OF(1, 16384)}) \
    X("cumsum-row", {.operation = SMELT_OPERATION_CUMSUM, LAST}, 1, .shapes = {OF(1, 16777216)}, .small = {OF(1, 16384)}) \
    X("argmax-row", {.operation = SMELT_OPERATION_ARGMAX, LAST}, 1, .shapes = {OF(1, 16777216)}, .small = {OF(1, 16384)}) \
    X("sort-row", {.operation = SMELT_OPERATION_SORT, LAST}, 1, .shapes = {OF(1, 4194304)}, .small = {OF(1, 16384)}) \
    X("layer-norm-row", {.operation = SMELT_OPERATION_LAYER_NORM, .numbers = {1e-5}}, 1, \
     .shapes = {OF(1, 16777216)}, .small = {OF(1, 16384)})
/* clang-format on */
#define AS_JOB(...) {__VA_ARGS__},
static const struct job jobs[] = {JOBS(AS_JOB)};
#define JOB_COUNT ((int)(sizeof jobs / sizeof *jobs))

/* ---- Inputs. */

/* What rope needs besides x: one position. */
static smelt_status add_offset(const struct job *job, smelt_array **inputs, int *count) {
    const int32_t zero = 0;
    if (job->desc.operation != SMELT_OPERATION_ROPE) return SMELT_OK;
    return smelt_array_from_values(SMELT_INT32, (smelt_shape){.ndim = 0}, &zero, &inputs[(*count)++]);
}

static smelt_status create_on_host(const struct job *job, const smelt_shape *shapes, smelt_array **inputs,
                                   int *count) {
    double size = job->run == delta ? 0.1 : job->desc.operation == SMELT_OPERATION_CHUNK_INVERSE ? 0.1 : 1;
    for (*count = 0; *count < job->inputs; (*count)++) {
        bool gate = job->run == delta && *count >= 3;
        smelt_status status = random_floats(shapes[*count], (uint64_t)*count + 1, gate ? -0.1 : -size,
                                            gate ? 0 : size, &inputs[*count]);
        if (status != SMELT_OK) return status;
    }
    return add_offset(job, inputs, count);
}

static smelt_status create_inputs(const struct job *job, const smelt_shape *shapes, const char *device,
                                  smelt_array **inputs, int *count) {
    smelt_status status = create_on_host(job, shapes, inputs, count);
    for (int i = 0; i < *count && status == SMELT_OK; i++) status = move(&inputs[i], device);
    return status;
}

static void release_inputs(smelt_array **inputs, int count) {
    for (int i = 0; i < count; i++) smelt_array_release(inputs[i]);
}

static smelt_status run_job(const struct job *job, smelt_array *const *inputs, int count, smelt_array **out) {
    struct job own = *job;
    own.inputs = count;
    if (job->desc.operation == SMELT_OPERATION_ROPE)
        own.desc.starts[0] = smelt_array_shape(inputs[0]).size[3];
    return (job->run ? job->run : apply)(&own, inputs, out);
}

/* ---- Checks: small arrays, float32 against float64. fft has no float64: its inverse must give its input. */

static double distance_of(smelt_array *a, smelt_array *b) {
    smelt_array *wide[2] = {0};
    double most = 0;
    if (smelt_array_convert(a, SMELT_FLOAT64, &wide[0]) != SMELT_OK ||
        smelt_array_convert(b, SMELT_FLOAT64, &wide[1]) != SMELT_OK ||
        smelt_array_size(wide[0]) != smelt_array_size(wide[1]))
        most = INFINITY;
    for (int64_t i = 0; most < INFINITY && i < smelt_array_size(wide[0]); i++) {
        double x = ((double *)smelt_array_data(wide[0]))[i], y = ((double *)smelt_array_data(wide[1]))[i];
        double apart = fabs(x - y) / fmax(1, fabs(y));
        most = apart >= most || isnan(apart) ? apart : most;
    }
    smelt_array_release(wide[0]);
    smelt_array_release(wide[1]);
    return isnan(most) ? INFINITY : most;
}

static smelt_status restore(smelt_array *spectrum, smelt_array **out) {
    smelt_array *back;
    smelt_status status = smelt_apply(
        &(smelt_apply_desc){.operation = SMELT_OPERATION_FFT, .inputs = {spectrum}, LAST, .reverse = true},
        &back);
    if (status != SMELT_OK) return status;
    status = smelt_apply(&(smelt_apply_desc){.operation = SMELT_OPERATION_REAL, .inputs = {back}}, out);
    smelt_array_release(back);
    return status;
}

static smelt_status compute_wanted(const struct job *job, smelt_array **inputs, int count, smelt_array **made,
                                   smelt_array **wanted) {
    smelt_array *wide[MOST_INPUTS + 1] = {0};
    smelt_status status = SMELT_OK;
    if (job->desc.operation == SMELT_OPERATION_FFT) {
        smelt_array *spectrum = *made;
        *made = NULL;
        status = restore(spectrum, made);
        smelt_array_release(spectrum);
        *wanted = smelt_array_retain(inputs[0]);
        return status;
    }
    for (int i = 0; i < count && status == SMELT_OK; i++)
        status = smelt_array_dtype(inputs[i]) == SMELT_FLOAT32
                     ? smelt_array_convert(inputs[i], SMELT_FLOAT64, &wide[i])
                     : (wide[i] = smelt_array_retain(inputs[i]), SMELT_OK);
    if (status == SMELT_OK) status = run_job(job, wide, count, wanted);
    release_inputs(wide, count);
    return status;
}

static smelt_status check(struct bench *bench, const struct job *job) {
    smelt_array *inputs[MOST_INPUTS + 1] = {0}, *made = NULL, *wanted = NULL;
    int count = 0;
    smelt_status status = create_inputs(job, job->small, bench->shared, inputs, &count);
    if (status == SMELT_OK) status = run_job(job, inputs, count, &made);
    if (status == SMELT_OK) status = move(&made, "cpu");
    for (int i = 0; i < count && status == SMELT_OK; i++) status = move(&inputs[i], "cpu");
    if (status == SMELT_OK) status = compute_wanted(job, inputs, count, &made, &wanted);
    if (status == SMELT_OK && !(distance_of(made, wanted) <= 1e-4)) {
        bench_fail(bench, job->name, SMELT, BENCH_WRONG_RESULT, "the result differs from float64");
        status = BENCH_WRONG_RESULT;
    } else if (status != SMELT_OK) {
        bench_fail(bench, job->name, SMELT, status, smelt_error());
    }
    smelt_array_release(made);
    smelt_array_release(wanted);
    release_inputs(inputs, count);
    return status;
}

/* ---- Times. */

struct timed {
    const struct job *job;
    const char *device;
    smelt_array *inputs[MOST_INPUTS + 1];
    int count;
    smelt_array *from, *to; /* of the copy, or the matrices of the product */
};

static smelt_status run_smelt(const struct timed *timed) {
    smelt_array *out;
    smelt_status status = run_job(timed->job, timed->inputs, timed->count, &out);
    if (status == SMELT_OK) smelt_array_release(out);
    return status;
}

static smelt_status run_copy(const struct timed *timed) {
    if (bench_is_gpu(timed->device)) return smelt_array_copy(timed->to, timed->from);
    machine_copy(floats(timed->from), floats(timed->to), smelt_array_size(timed->from));
    return SMELT_OK;
}

static smelt_status run_product(const struct timed *timed) {
    smelt_array *out;
    smelt_status status = smelt_apply(
        &(smelt_apply_desc){.operation = SMELT_OPERATION_MATMUL, .inputs = {timed->from, timed->to}}, &out);
    if (status == SMELT_OK) smelt_array_release(out);
    return status;
}

/* Of one run, until the device has finished. */
static smelt_status measure_run(const struct timed *timed, smelt_status (*run)(const struct timed *timed),
                                double *seconds) {
    int runs = bench_is_gpu(timed->device) ? GPU_RUNS : 1;
    smelt_status status = SMELT_OK;
    double start = bench_now();
    for (int i = 0; i < runs && status == SMELT_OK; i++) status = run(timed);
    if (status == SMELT_OK && bench_is_gpu(timed->device)) status = smelt_device_wait(timed->device);
    *seconds = (bench_now() - start) / runs;
    return status;
}

static smelt_status measure_smelt(void *context, double *seconds) {
    return measure_run(context, run_smelt, seconds);
}

static smelt_status measure_copy(void *context, double *seconds) {
    return measure_run(context, run_copy, seconds);
}

#define SIDE 1024
static smelt_status measure_product(void *context, double *seconds) {
    const struct timed *timed = context;
    smelt_status status = measure_run(timed, run_product, seconds);
    double flops = timed->job->flops * (double)smelt_array_size(timed->inputs[0]);
    *seconds *= flops / (2.0 * SIDE * SIDE * SIDE);
    return status;
}

static const char *peer_error;
static const char *message_of_peer(void) {
    return peer_error ? peer_error : smelt_error();
}
static smelt_status measure_peer(void *context, double *seconds) {
    const struct timed *timed = context;
    peer_error = peers_measure(timed->job->name, bench_is_gpu(timed->device) ? GPU_RUNS : 1, seconds);
    return peer_error ? SMELT_ERROR_INTERNAL : SMELT_OK;
}

/* The bytes of inputs and result, once each. */
static smelt_status bytes_of(const struct timed *timed, double *bytes) {
    smelt_array *out;
    smelt_status status = run_job(timed->job, timed->inputs, timed->count, &out);
    if (status != SMELT_OK) return status;
    *bytes = (double)smelt_array_size(out) * (double)smelt_dtype_bytes(smelt_array_dtype(out));
    for (int i = 0; i < timed->count; i++)
        *bytes += (double)smelt_array_size(timed->inputs[i]) *
                  (double)smelt_dtype_bytes(smelt_array_dtype(timed->inputs[i]));
    smelt_array_release(out);
    return SMELT_OK;
}

static smelt_status create_floor(struct timed *timed, double bytes) {
    smelt_shape shape = OF(SIDE, SIDE);
    if (timed->job->flops == 0) shape = SHAPE_OF(((int64_t)bytes / 8 + 63) / 64 * 64);
    smelt_status status = random_floats(shape, 21, -1, 1, &timed->from);
    if (status == SMELT_OK) status = random_floats(shape, 22, -1, 1, &timed->to);
    if (status == SMELT_OK) status = move(&timed->from, timed->device);
    return status == SMELT_OK ? move(&timed->to, timed->device) : status;
}

static smelt_status measure(struct bench *bench, struct timed *timed) {
    const struct job *job = timed->job;
    double bytes, seconds, work;
    smelt_status status = bytes_of(timed, &bytes);
    if (status == SMELT_OK) status = create_floor(timed, bytes);
    if (status != SMELT_OK) return status;
    bool by_bytes = job->flops == 0;
    const char *absent = peers_measure(job->name, 1, &seconds), *unit = by_bytes ? "B" : "FLOP";
    const char *floor = by_bytes ? COPY : PRODUCT;
    bool to_peer = job->to_peer && !absent, bar = to_peer || !job->to_peer;
    work = by_bytes ? bytes : job->flops * (double)smelt_array_size(timed->inputs[0]);
    if (absent) bench_note(bench, job->name, PYTORCH, absent);
    struct bench_case cases[4] = {{.job = job->name,
                                   .variant = floor,
                                   .measure = by_bytes ? measure_copy : measure_product,
                                   .context = timed},
                                  {.job = job->name,
                                   .variant = SMELT,
                                   .anchor = to_peer ? PYTORCH : floor,
                                   .bar = bar ? job->bar : NO_BAR,
                                   .measure = measure_smelt,
                                   .context = timed},
                                  {.job = job->name,
                                   .variant = PYTORCH,
                                   .anchor = floor,
                                   .measure = measure_peer,
                                   .context = timed,
                                   .error = message_of_peer}};
    for (int i = 0; i < 3; i++) cases[i].work = work, cases[i].work_unit = unit;
    status = bench_measure(bench, cases, absent ? 2 : 3, bench_repeats(bench, ROUNDS));
    peers_forget(job->name);
    return status;
}

static smelt_status run_named(struct bench *bench, const char *name) {
    struct timed timed = {.device = bench->shared};
    for (int i = 0; i < JOB_COUNT; i++)
        if (strcmp(jobs[i].name, name) == 0) timed.job = &jobs[i];
    if (check(bench, timed.job) != SMELT_OK) return SMELT_OK; /* it is reported */
    smelt_status status = create_inputs(timed.job, bench->quick ? timed.job->small : timed.job->shapes,
                                        timed.device, timed.inputs, &timed.count);
    if (status == SMELT_OK) status = measure(bench, &timed);
    release_inputs(timed.inputs, timed.count);
    smelt_array_release(timed.from);
    smelt_array_release(timed.to);
    return status;
}

/* ---- The benchmark. */

#define AS_NAME(name, ...) {name, run_named},
static const struct bench_job named[] = {JOBS(AS_NAME){0}};

/* The child starts before this thread is bound to one CPU, so that PyTorch may use all of them. */
static smelt_status run(struct bench *bench) {
    const char *device = bench_device(bench);
    if (!device) return SMELT_OK; /* it is reported */
    bench->shared = (void *)device;
    peers_start_on(kernel_text_peers_ops, bench->quick, device);
    cpu_start_threads();
    bench_run_jobs(bench, named, smelt_error);
    peers_stop();
    return SMELT_OK;
}

const struct benchmark bench_ops = {
    .name = "ops",
    .help = "operations on arrays beside a copy or a product of as much work, and PyTorch",
    .run = run,
    .jobs = named,
};
