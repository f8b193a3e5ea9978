/* Instruction sets of the CPU that code is generated for, by LLVM's names of CPUs and features. */
#include "compiler/pass.h"

#include <llvm-c/TargetMachine.h>
#include <string.h>

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
    char *host = features ? NULL : LLVMGetHostCPUFeatures();
    if (host) features = host;
    if (!features) return 128;
    int bits = has_feature(features, "+avx512bw") && has_feature(features, "+avx512vl") &&
                       has_feature(features, "+avx512dq")
                   ? 512
               : has_feature(features, "+avx2") ? 256
                                                : 128;
    if (host) LLVMDisposeMessage(host);
    return bits;
}

bool simd_computes_halves(const char *cpu, const char *features) {
    char *host = features || cpu ? NULL : LLVMGetHostCPUFeatures();
    if (host) features = host;
    bool computes = features && has_feature(features, "+avx512fp16");
    if (host) LLVMDisposeMessage(host);
    return computes;
}
