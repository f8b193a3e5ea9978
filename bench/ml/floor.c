/* What no kernel can beat, and PyTorch's times. */
#include "bench/cpu/threads.h"
#include "bench/kernel_text.h"
#include "bench/ml/ml.h"
#include "bench/peers.h"

/* ---- Bytes. */

#define PIECE (1 << 16)

struct reading {
    const uint64_t *words;
    int64_t count;
};

static volatile uint64_t reading_result; /* so that the loads are not removed */

static void read_piece(void *context, int64_t index) {
    const struct reading *reading = context;
    int64_t past = (index + 1) * PIECE < reading->count ? (index + 1) * PIECE : reading->count;
    uint64_t sums[8] = {0};
    int64_t i = index * PIECE;
    for (; i + 8 <= past; i += 8)
        for (int k = 0; k < 8; k++) sums[k] ^= reading->words[i + k];
    for (int k = 1; k < 8; k++) sums[0] ^= sums[k];
    reading_result = sums[0];
}

static smelt_status measure_bytes(void *copies, double *seconds) {
    const struct ml_copies *all = copies;
    struct reading reading = {smelt_array_data(ml_copies_next(copies)), all->bytes / 8};
    double start = bench_now();
    team_run(read_piece, &reading, (reading.count + PIECE - 1) / PIECE);
    *seconds = bench_now() - start;
    return SMELT_OK;
}

void ml_enter_bytes(struct contest *contest, struct ml_copies *copies) {
    contest_add(contest, (struct bench_case){.variant = ML_FLOOR_BYTES,
                                             .measure = measure_bytes,
                                             .context = copies,
                                             .work = contest->work,
                                             .work_unit = contest->work_unit});
}

/* ---- Operations. */

#define THREADS (1 << 14)
#define PEAK_WORK (2.0 * 3 * 4096 * THREADS) /* of multiply_adds.metal */

static smelt_status measure_operations(void *context, double *seconds) {
    struct ml_operations *operations = context;
    double start = bench_now();
    smelt_status status = launches_run(&operations->launches);
    *seconds = (bench_now() - start) * operations->work / PEAK_WORK;
    return status;
}

void ml_enter_operations(struct contest *contest, struct ml_operations *operations) {
    *operations = (struct ml_operations){.work = contest->work};
    smelt_status status = new_floats(SHAPE_OF(THREADS), &operations->output);
    smelt_dispatch_desc desc = {
        .buffers = {{.array = operations->output}}, .grid = {THREADS}, .threadgroup = {256}, .device = "cpu"};
    if (status == SMELT_OK)
        status = launches_add(&operations->launches, "multiply_adds.metal", kernel_text_multiply_adds,
                              "multiply_adds", &desc);
    if (contest->status == SMELT_OK) contest->status = status;
    contest_add(contest, (struct bench_case){.variant = ML_FLOOR_OPERATIONS,
                                             .measure = measure_operations,
                                             .context = operations,
                                             .work = contest->work,
                                             .work_unit = contest->work_unit});
}

void ml_operations_release(struct ml_operations *operations) {
    launches_release(&operations->launches);
    smelt_array_release(operations->output);
}

/* ---- PyTorch. */

static const char *peer_error;

static const char *message_of_peer(void) {
    return peer_error ? peer_error : smelt_error();
}

static smelt_status measure_peer(void *context, double *seconds) {
    peer_error = peers_measure(context, 1, seconds);
    return peer_error ? SMELT_ERROR_INTERNAL : SMELT_OK;
}

struct ml_anchor ml_enter_peer(struct contest *contest, const char *job, double most, const char *otherwise) {
    double seconds;
    const char *absent = peers_measure(job, 1, &seconds);
    if (absent) {
        contest_absent(contest, ML_PYTORCH, absent);
        return (struct ml_anchor){.variant = otherwise};
    }
    contest_add(contest, (struct bench_case){.variant = ML_PYTORCH,
                                             .measure = measure_peer,
                                             .context = (void *)job,
                                             .work = contest->work,
                                             .work_unit = contest->work_unit});
    if (contest->case_count) contest->cases[contest->case_count - 1].error = message_of_peer;
    return (struct ml_anchor){ML_PYTORCH, {BENCH_TIME_AT_MOST, most}};
}
