/* Instruction sets of the CPU that code is generated for, by LLVM's names of CPUs and features. */
#include "compiler/pass.h"

#include <llvm-c/TargetMachine.h>
#include <pthread.h>
#include <string.h>

/* A compile needs them some seven times. Finding them takes 0.1 to 0.2 ms in virtual machines, which trap the
 * instructions for it. */
static char *host_features;

static void find_host_features(void) {
    host_features = LLVMGetHostCPUFeatures();
}

const char *simd_host_features(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_host_features);
    return host_features ? host_features : "";
}

static bool has_feature(const char *features, const char *name) {
    size_t length = strlen(name);
    for (const char *at = features; (at = strstr(at, name)); at += length) {
        bool starts = at == features || at[-1] == ',';
        if (starts && (at[length] == ',' || !at[length])) return true;
    }
    return false;
}

int simd_vector_bits(const char *cpu, const char *features) {
    if (cpu) {
        if (strcmp(cpu, "x86-64-v4") == 0) return 512;
        if (strcmp(cpu, "x86-64-v3") == 0) return 256;
        if (strcmp(cpu, "x86-64") == 0) return 128;
    }
    if (!features) features = simd_host_features();
    return has_feature(features, "+avx512bw") && has_feature(features, "+avx512vl") &&
                   has_feature(features, "+avx512dq")
               ? 512
           : has_feature(features, "+avx2") ? 256
                                            : 128;
}

bool simd_computes_halves(const char *cpu, const char *features) {
    if (!features && !cpu) features = simd_host_features();
    return features && has_feature(features, "+avx512fp16");
}

bool simd_converts_halves(const char *cpu, const char *features) {
    if (simd_vector_bits(cpu, features) > 128) return true;
    if (!features && !cpu) features = simd_host_features();
    return features && has_feature(features, "+f16c");
}

bool simd_multiplies_bfloats(const char *cpu, const char *features) {
    if (simd_vector_bits(cpu, features) < 512) return false;
    if (!features && !cpu) features = simd_host_features();
    return features && has_feature(features, "+avx512bf16");
}

bool simd_multiplies_blocks(const char *cpu, const char *features) {
    if (!simd_multiplies_bfloats(cpu, features)) return false;
    if (!features && !cpu) features = simd_host_features();
    return features && has_feature(features, "+amx-bf16") && has_feature(features, "+amx-tile");
}
