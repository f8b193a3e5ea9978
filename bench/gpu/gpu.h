/* smelt bench gpu: what its jobs share. In its contests kernels of smelt, PyTorch and the driver's copy are
 * timed by the device's own clock. smelt's are checked into output whose every byte was 0xff. */
#ifndef SMELT_BENCH_GPU_GPU_H
#define SMELT_BENCH_GPU_GPU_H

#include "bench/contest.h"
#include "bench/gpu/driver.h"

#define GPU "cuda:0"
#define FLOOR "floor, by copy"
#define PYTORCH "PyTorch"

/* Shared by the jobs of a benchmark; created once. */
struct gpu {
    struct bench *bench;
    smelt_stream *stream; /* of smelt; also the one events are recorded on */
    smelt_event *start, *end;
    smelt_array *from, *to; /* float32, for copies */
    smelt_function *copy;
};

/* Opens the first GPU for the benchmark, as bench->shared; gpu_close in any case. */
smelt_status gpu_open(struct bench *bench, struct gpu *gpu);
void gpu_close(struct gpu *gpu);

/* The jobs chosen, with the GPU open if it is there; what cannot be prepared is reported. */
void gpu_run_jobs(struct bench *bench, const struct bench_job *jobs, bool is_there);

extern const struct contest_device gpu_contest;

/* Appends a launch on the GPU's stream. */
smelt_status gpu_add_launch(struct gpu *gpu, struct launches *launches, const char *file, const char *text,
                            const char *function, const smelt_dispatch_desc *desc);

/* A contest of launches, `batch` in a row, each of which moves `bytes` and writes `output`. */
struct contest gpu_byte_contest(struct gpu *gpu, const char *name, double bytes, int batch,
                                smelt_array *output, contest_check *check, void *check_context);

/* The anchor: the job's bytes at the speed of the faster of two copies, the driver's and a kernel's, measured
 * in the same rounds. */
void gpu_enter_floor(struct contest *contest);

/* PyTorch's job of this name; a row reports a missing PyTorch. */
void gpu_enter_peer(struct contest *contest, const char *variant, const char *peer);

/* contest_run, which then releases PyTorch's data. */
smelt_status gpu_contest_run(struct contest *contest);

/* The device's time of `count` runs, by one. */
smelt_status gpu_time(struct gpu *gpu, smelt_status (*run)(void *context), void *context, int count,
                      double *seconds);

/* The same of work that the host takes longer to enqueue than the device to do: it begins behind a copy, so
 * that the host is ahead. */
smelt_status gpu_time_ahead(struct gpu *gpu, smelt_status (*run)(void *context), void *context, int count,
                            double *seconds);

/* Says what failed as smelt's own calls do: the message is shown by gpu_error. */
smelt_status gpu_driver_status(const char *sentence);
const char *gpu_error(void);

/* ---- Data: on the GPU, a block of random numbers repeated. */
smelt_status gpu_new(smelt_dtype dtype, smelt_shape shape, smelt_array **array);
/* Uniform in [low, high): `unique` different numbers, or as many as there are if that is fewer. */
smelt_status gpu_random(smelt_dtype dtype, smelt_shape shape, int64_t unique, uint64_t seed, double low,
                        double high, smelt_array **array);
/* The first `count` elements as float32 on the host, to be released with free; NULL on failure. */
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
/* … of several names, one for each kernel */
smelt_status bench_gpu_plain(struct bench *bench, const char *job);
smelt_status bench_gpu_matvec(struct bench *bench, const char *job);
smelt_status bench_gpu_matmat(struct bench *bench, const char *job);
smelt_status bench_gpu_attention(struct bench *bench, const char *job);
smelt_status bench_gpu_straight(struct bench *bench, const char *job);
smelt_status bench_gpu_softmax(struct bench *bench, const char *job);
smelt_status bench_gpu_rms_norm(struct bench *bench, const char *job);
smelt_status bench_gpu_grid_sample(struct bench *bench, const char *job);
smelt_status bench_gpu_grid_sample_vjp(struct bench *bench, const char *job);
smelt_status bench_gpu_inverse(struct bench *bench, const char *job);
smelt_status bench_gpu_matmul(struct bench *bench, const char *job);
smelt_status bench_gpu_matmul2d_4096(struct bench *bench, const char *job);
smelt_status bench_gpu_matmul2d_8192(struct bench *bench, const char *job);

#endif
