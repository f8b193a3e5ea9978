/* smelt bench ml: kernels as public projects write them, next to what the machine and PyTorch do. */
#include "bench/kernel_text.h"
#include "bench/ml/ml.h"
#include "bench/peers.h"

static const struct bench_job jobs[] = {
    {"matvec-q4_0", bench_ml_matvec},   {"matvec-q5_0", bench_ml_matvec}, {"matvec-q8_0", bench_ml_matvec},
    {"matvec-mxfp4", bench_ml_matvec},  {"matvec-q4_K", bench_ml_matvec}, {"matvec-q6_K", bench_ml_matvec},
    {"matmat-f16", bench_ml_matmat},    {"matmat-q4_0", bench_ml_matmat}, {"attention", bench_ml_attention},
    {"softmax-rows", bench_ml_softmax}, {"rms-norm", bench_ml_norm},      {0},
};

/* The child starts before this thread is bound to one CPU, so that PyTorch may use all of them. */
static smelt_status run(struct bench *bench) {
    peers_start(kernel_text_peers_ml, bench->quick);
    cpu_start_threads();
    bench_run_jobs(bench, jobs, smelt_error);
    peers_stop();
    return SMELT_OK;
}

const struct benchmark bench_ml = {
    .name = "ml",
    .help = "kernels as public projects write them, next to the machine's bounds and PyTorch, on the CPU",
    .run = run,
    .jobs = jobs,
};
