/* smelt bench gpu: what its jobs share. A job is a contest on the GPU: kernels of smelt, PyTorch and the
 * driver's copy do the same work in turn, timed by the device's own clock. smelt's are checked before any is
 * timed, into output whose every byte was 0xff. */
#ifndef SMELT_BENCH_GPU_CONTEST_H
#define SMELT_BENCH_GPU_CONTEST_H

#include "bench/harness.h"
#include "bench/gpu/driver.h"

#define GPU "cuda:0"
#define FLOOR "floor, by copy"
#define PYTORCH "PyTorch"

/* What all jobs use; made once. */
struct gpu {
    struct bench *bench;
    smelt_stream *stream; /* of smelt; also the one events are recorded on */
    smelt_event *start, *end;
    smelt_array *from, *to; /* float32, for copies */
    smelt_function *copy;
};

#define GPU_MAX_CASES 12
#define GPU_MAX_LAUNCHES 2

/* Launches that together do the job. */
struct gpu_launches {
    struct gpu *gpu;
    smelt_function *functions[GPU_MAX_LAUNCHES];
    smelt_dispatch_desc descs[GPU_MAX_LAUNCHES];
    int count;
};

/* A kernel function of a text. */
smelt_status gpu_function(const char *file, const char *text, const char *name, smelt_function **function);

/* Appends one. Its stream and device are set. */
smelt_status gpu_add_launch(struct gpu *gpu, struct gpu_launches *launches, const char *file,
                            const char *text, const char *function, const smelt_dispatch_desc *desc);
smelt_status gpu_run_launches(void *launches);
void gpu_release_launches(struct gpu_launches *launches);

/* Looks at the whole output, copied to the host; false: it is wrong, and `message` says how. */
typedef bool gpu_check(void *context, const void *output, char *message, size_t size);

struct gpu_entry {
    struct gpu_contest *contest;
    smelt_status (*run)(void *context); /* enqueues the job once on gpu->stream */
    void *context;
    const char *peer; /* or: the job's name among PyTorch's */
};

struct gpu_contest {
    struct gpu *gpu;
    const char *job;
    double bytes;        /* the fewest there are to move: the floor's, and what rates count; 0: no floor */
    double operations;   /* or: what rates count where there is no floor */
    int batch;           /* runs between two events */
    smelt_array *output; /* what `check` looks at */
    gpu_check *check;
    void *check_context;
    /* Filled by the functions below. */
    smelt_status status;
    struct gpu_entry entries[GPU_MAX_CASES];
    struct bench_case cases[2 * GPU_MAX_CASES];
    int count, case_count;
};

/* The anchor: the job's bytes at the speed of the faster of two copies, the driver's and a kernel's, measured
 * in the same rounds. */
void gpu_enter_floor(struct gpu_contest *contest);

/* Runs it once into poisoned output and checks; if it is right it takes part, else it is a failed row. */
void gpu_enter(struct gpu_contest *contest, const char *variant, smelt_status (*run)(void *context),
               void *context, const char *anchor, struct bench_bar bar);

/* PyTorch's job of this name, if PyTorch is there; a row says so where it is not. */
void gpu_enter_peer(struct gpu_contest *contest, const char *variant, const char *peer);

/* A case with a measure of its own. */
void gpu_add_case(struct gpu_contest *contest, struct bench_case one);

/* The figures of the case added last once more, compared with another variant; nothing if that is absent. */
void gpu_compare(struct gpu_contest *contest, const char *variant, const char *anchor, struct bench_bar bar);

/* Times all that takes part. */
smelt_status gpu_contest_run(struct gpu_contest *contest);

/* The device's time of `count` runs, by one. */
smelt_status gpu_time(struct gpu *gpu, smelt_status (*run)(void *context), void *context, int count,
                      double *seconds);

/* Says what failed as smelt's own calls do: the message is shown by gpu_error. */
smelt_status gpu_driver_status(const char *sentence);
const char *gpu_error(void);

/* ---- Data: on the GPU, a block of random numbers repeated. */
smelt_status gpu_new(smelt_dtype dtype, smelt_shape shape, smelt_array **array);
/* Uniform in [low, high): `unique` different numbers, or as many as there are if that is fewer. */
smelt_status gpu_random(smelt_dtype dtype, smelt_shape shape, int64_t unique, uint64_t seed, double low,
                        double high, smelt_array **array);
/* The first `count` elements as float32 on the host, to be released with free; NULL if they cannot be had. */
float *gpu_first_values(const smelt_array *array, int64_t count);

static inline gpu_address gpu_place(const smelt_array *array) {
    return (gpu_address)(uintptr_t)smelt_array_data(array);
}

static inline size_t gpu_bytes(const smelt_array *array) {
    return (size_t)smelt_array_size(array) * smelt_dtype_bytes(smelt_array_dtype(array));
}

/* Bits of a number. */
float gpu_widen_bfloat(uint16_t bits);
float gpu_widen_half(uint16_t bits);

/* Elements of a random block where the job does not need more. */
#define GPU_BLOCK (1 << 22)

/* ---- The jobs, each in a file of its kind. */
smelt_status bench_gpu_copy(struct bench *bench, const char *job);
smelt_status bench_gpu_launch(struct bench *bench, const char *job);
smelt_status bench_gpu_exp(struct bench *bench, const char *job);
smelt_status bench_gpu_softmax(struct bench *bench, const char *job);
smelt_status bench_gpu_rms_norm(struct bench *bench, const char *job);
smelt_status bench_gpu_grid_sample(struct bench *bench, const char *job);
smelt_status bench_gpu_grid_sample_vjp(struct bench *bench, const char *job);
smelt_status bench_gpu_inverse(struct bench *bench, const char *job);
smelt_status bench_gpu_matmul(struct bench *bench, const char *job);

#endif
