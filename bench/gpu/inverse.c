/* Inverses of unit lower triangular 64 x 64 squares: a kernel for this size, and one as it was found,
 * which does not. */
#include "bench/gpu/gpu.h"
#include "bench/kernel_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIDE 64
#define ELEMENTS (SIDE * SIDE)
#define SQUARES 16384
#define TOLERANCE 1e-4

struct inverse_job {
    smelt_array *a, *out;
    float *values; /* the block that `a` repeats, on the host */
    int64_t squares;
};

static void expect_square(const float *a, double x[SIDE][SIDE]) {
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            x[i][j] = i == j;
            for (int k = j; k < i; k++) x[i][j] -= a[i * SIDE + k] * x[k][j];
        }
}

/* Every different square against the formula, of the others that they are the same. */
static bool check_squares(void *context, const void *output, char *message, size_t size) {
    const struct inverse_job *job = context;
    const float *actual = output;
    static double expected[SIDE][SIDE];
    for (int64_t square = 0; square < job->squares; square++) {
        int64_t same = square % (GPU_BLOCK / ELEMENTS);
        if (square == same) expect_square(job->values + square * ELEMENTS, expected);
        for (int i = 0; i < ELEMENTS; i++) {
            double value = actual[square * ELEMENTS + i];
            double wanted = square == same ? expected[i / SIDE][i % SIDE] : actual[same * ELEMENTS + i];
            if (fabs(value - wanted) <= TOLERANCE) continue;
            snprintf(message, size, "wrong result: element (%d, %d) of square %lld is %.9g, expected %.9g",
                     i / SIDE, i % SIDE, (long long)square, value, wanted);
            return false;
        }
    }
    return true;
}

#define SEED_FILE "002_11cef5617188d901.txt"

/* Next to the repository, or next to the programs if they were copied elsewhere. */
static FILE *open_seed(void) {
    char beside[4096] = "";
    ssize_t length = readlink("/proc/self/exe", beside, sizeof beside - sizeof "/../seeds");
    char *end = length > 0 ? strrchr(beside, '/') : NULL;
    if (end) memcpy(end, "/../seeds", sizeof "/../seeds");
    const char *const folders[] = {getenv("SMELT_TEST_SEEDS"), "../shared/seeds", "shared/seeds", beside};
    FILE *stream = NULL;
    for (size_t i = 0; i < sizeof folders / sizeof *folders && !stream; i++) {
        char path[4200];
        if (!folders[i]) continue;
        snprintf(path, sizeof path, "%s/" SEED_FILE, folders[i]);
        stream = fopen(path, "rb");
    }
    return stream;
}

/* The seed's file, as it is, from its first #include on; NULL: it is not here. */
static char *read_seed(void) {
    FILE *stream = open_seed();
    if (!stream) return NULL;
    char *text = calloc(1, 1 << 16);
    size_t length = text ? fread(text, 1, (1 << 16) - 1, stream) : 0;
    (void)fclose(stream);
    char *source = length ? strstr(text, "#include") : NULL;
    if (source) memmove(text, source, strlen(source) + 1);
    if (source) return text;
    free(text);
    return NULL;
}

#define SEED "seed 002, unmodified"

static smelt_status enter_seed(struct contest *contest, struct launches *launches,
                               const struct inverse_job *job) {
    static uint32_t size[4] = {1, 0, 1, SIDE};
    size[1] = (uint32_t)job->squares * SIDE;
    char *text = read_seed();
    if (!text) {
        bench_note(contest->bench, contest->job, SEED,
                   "the seeds are in none of $SMELT_TEST_SEEDS, ../shared/seeds, shared/seeds");
        return SMELT_OK;
    }
    smelt_status status = gpu_add_launch(
        contest->bench->shared, launches, "seed_002.metal", text, "chunk_tri_solve_invert_f32",
        &(smelt_dispatch_desc){
            .buffers = {{.array = job->a}, {.array = job->out}, {.bytes = size, .size = sizeof size}},
            .threadgroup_memory = {2 * ELEMENTS * sizeof(float)},
            .groups = {job->squares, 1, 1},
            .threadgroup = {SIDE, 1, 1}});
    free(text);
    if (status != SMELT_OK) return status;
    contest_enter(contest, (struct variant){.name = SEED,
                                            .run = launches_run,
                                            .context = launches,
                                            .anchor = FLOOR,
                                            .bar = {BENCH_TIME_AT_MOST, 6}});
    contest_compare(contest, SEED, PYTORCH, NO_BAR);
    return SMELT_OK;
}

static smelt_status measure(struct gpu *gpu, const char *name, struct inverse_job *job) {
    struct contest contest =
        gpu_byte_contest(gpu, name, 2.0 * (double)gpu_bytes(job->out), 10, job->out, check_squares, job);
    struct launches own = {0}, seed = {0};
    smelt_status status =
        gpu_add_launch(gpu, &own, "gpu_inverse.metal", kernel_text_gpu_inverse, "inverse_64",
                       &(smelt_dispatch_desc){.buffers = {{.array = job->a}, {.array = job->out}},
                                              .groups = {job->squares, 1, 1},
                                              .threadgroup = {SIDE, 1, 1}});
    if (status == SMELT_OK) {
        gpu_enter_floor(&contest);
        gpu_enter_peer(&contest, PYTORCH, "inverse");
        contest_enter(&contest, (struct variant){.name = "smelt, 64 known",
                                                 .run = launches_run,
                                                 .context = &own,
                                                 .anchor = FLOOR,
                                                 .bar = {BENCH_TIME_AT_MOST, 2}});
        contest_compare(&contest, "smelt, 64 known", PYTORCH, NO_BAR);
        status = enter_seed(&contest, &seed, job);
    }
    if (status == SMELT_OK) status = gpu_contest_run(&contest);
    launches_release(&own);
    launches_release(&seed);
    return status;
}

smelt_status bench_gpu_inverse(struct bench *bench, const char *name) {
    struct gpu *gpu = bench->shared;
    struct inverse_job job = {.squares = gpu->bench->quick ? 64 : SQUARES};
    smelt_shape shape = SHAPE_OF(job.squares, SIDE, SIDE);
    smelt_status status = gpu_random(SMELT_FLOAT32, shape, GPU_BLOCK, 50, -0.1, 0.1, &job.a);
    if (status == SMELT_OK) status = gpu_new(SMELT_FLOAT32, shape, &job.out);
    if (status == SMELT_OK) {
        int64_t count = smelt_array_size(job.a) < GPU_BLOCK ? smelt_array_size(job.a) : GPU_BLOCK;
        job.values = gpu_first_values(job.a, count);
        status = job.values ? measure(gpu, name, &job) : SMELT_ERROR_OUT_OF_MEMORY;
    }
    free(job.values);
    smelt_array_release(job.a);
    smelt_array_release(job.out);
    return status;
}
