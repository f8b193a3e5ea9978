#include "device/cpu/arch/arch.h"

#include <cpuid.h>
#include <string.h>

enum cpu_register { EAX, EBX, ECX, EDX };

/* The registers that the system must save for a thread, as bits of XCR0. */
#define STATE_AVX 0x06u
#define STATE_AVX512 0xe6u

/* Leaf, subleaf, register, bit: Intel's manual, volume 2, CPUID. Sets that only the system, or code that asks
 * for them by name, can use (SGX, keys, AMX …) are left out: code generation never uses them. */
static const struct feature {
    const char *name;
    uint32_t leaf, subleaf;
    enum cpu_register place;
    int bit;
    uint32_t state;
} features[] = {
    {"sse3", 1, 0, ECX, 0, 0},
    {"pclmul", 1, 0, ECX, 1, 0},
    {"ssse3", 1, 0, ECX, 9, 0},
    {"fma", 1, 0, ECX, 12, STATE_AVX},
    {"cx16", 1, 0, ECX, 13, 0},
    {"sse4.1", 1, 0, ECX, 19, 0},
    {"sse4.2", 1, 0, ECX, 20, 0},
    {"movbe", 1, 0, ECX, 22, 0},
    {"popcnt", 1, 0, ECX, 23, 0},
    {"aes", 1, 0, ECX, 25, 0},
    {"avx", 1, 0, ECX, 28, STATE_AVX},
    {"f16c", 1, 0, ECX, 29, STATE_AVX},
    {"bmi", 7, 0, EBX, 3, 0},
    {"avx2", 7, 0, EBX, 5, STATE_AVX},
    {"bmi2", 7, 0, EBX, 8, 0},
    {"avx512f", 7, 0, EBX, 16, STATE_AVX512},
    {"avx512dq", 7, 0, EBX, 17, STATE_AVX512},
    {"adx", 7, 0, EBX, 19, 0},
    {"avx512ifma", 7, 0, EBX, 21, STATE_AVX512},
    {"avx512cd", 7, 0, EBX, 28, STATE_AVX512},
    {"sha", 7, 0, EBX, 29, 0},
    {"avx512bw", 7, 0, EBX, 30, STATE_AVX512},
    {"avx512vl", 7, 0, EBX, 31, STATE_AVX512},
    {"avx512vbmi", 7, 0, ECX, 1, STATE_AVX512},
    {"avx512vbmi2", 7, 0, ECX, 6, STATE_AVX512},
    {"gfni", 7, 0, ECX, 8, 0},
    {"vaes", 7, 0, ECX, 9, STATE_AVX},
    {"vpclmulqdq", 7, 0, ECX, 10, STATE_AVX},
    {"avx512vnni", 7, 0, ECX, 11, STATE_AVX512},
    {"avx512bitalg", 7, 0, ECX, 12, STATE_AVX512},
    {"avx512vpopcntdq", 7, 0, ECX, 14, STATE_AVX512},
    {"movdiri", 7, 0, ECX, 27, 0},
    {"avx512vp2intersect", 7, 0, EDX, 8, STATE_AVX512},
    {"avx512fp16", 7, 0, EDX, 23, STATE_AVX512},
    {"sha512", 7, 1, EAX, 0, STATE_AVX},
    {"sm3", 7, 1, EAX, 1, STATE_AVX},
    {"sm4", 7, 1, EAX, 2, STATE_AVX},
    {"avxvnni", 7, 1, EAX, 4, STATE_AVX},
    {"avx512bf16", 7, 1, EAX, 5, STATE_AVX512},
    {"cmpccxadd", 7, 1, EAX, 7, 0},
    {"avxifma", 7, 1, EAX, 23, STATE_AVX},
    {"avxvnniint8", 7, 1, EDX, 4, STATE_AVX},
    {"avxneconvert", 7, 1, EDX, 5, STATE_AVX},
    {"avxvnniint16", 7, 1, EDX, 10, STATE_AVX},
    {"avx10.1-256", 7, 1, EDX, 19, STATE_AVX512},
    {"egpr", 7, 1, EDX, 21, 1u << 19},
    {"sahf", 0x80000001u, 0, ECX, 0, 0},
    {"lzcnt", 0x80000001u, 0, ECX, 5, 0},
    {"sse4a", 0x80000001u, 0, ECX, 6, 0},
    {"xop", 0x80000001u, 0, ECX, 11, STATE_AVX},
    {"fma4", 0x80000001u, 0, ECX, 16, STATE_AVX},
    {"tbm", 0x80000001u, 0, ECX, 21, 0},
};
#define FEATURE_COUNT (sizeof features / sizeof *features)

/* The register states the system saves: 0 if it cannot be queried. */
static uint32_t saved_states(void) {
    uint32_t registers[4];
    if (!__get_cpuid(1, &registers[EAX], &registers[EBX], &registers[ECX], &registers[EDX])) return 0;
    if (!(registers[ECX] & bit_OSXSAVE)) return 0;
    uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static bool machine_has(const struct feature *feature, uint32_t states) {
    uint32_t r[4] = {0};
    if (!__get_cpuid_count(feature->leaf, feature->subleaf, &r[EAX], &r[EBX], &r[ECX], &r[EDX])) return false;
    return (r[feature->place] >> feature->bit & 1) && (states & feature->state) == feature->state;
}

/* By code generation (compiler/cpu/codegen.c). Code that earlier versions packaged may need it all the same.
 */
static bool is_avoided(const struct feature *feature) {
    return strcmp(feature->name, "sse4a") == 0;
}

void arch_add_features(bool avoided, struct text *out) {
    uint32_t states = saved_states();
    for (size_t i = 0; i < FEATURE_COUNT; i++)
        if ((avoided || !is_avoided(&features[i])) && machine_has(&features[i], states))
            text_addf(out, "%s%s", out->length ? " " : "", features[i].name);
}

/* ---- Levels. */

/* The psABI's, of which code generation for x86-64 needs no more than the baseline. */
#define LEVEL_3 "sse3 ssse3 fma cx16 sse4.1 sse4.2 movbe popcnt avx f16c bmi avx2 bmi2 "
const struct arch_level arch_levels[] = {
    {"avx512", "x86-64-v4", LEVEL_3 "avx512f avx512dq avx512cd avx512bw avx512vl sahf lzcnt"},
    {"avx2", "x86-64-v3", LEVEL_3 "sahf lzcnt"},
    {"sse2", "x86-64", ""},
    {NULL, NULL, NULL},
};

static bool is_listed(const char *list, const char *name) {
    size_t length = strlen(name);
    for (; *list; list += strcspn(list, " "), list += *list == ' ')
        if (strcspn(list, " ") == length && strncmp(list, name, length) == 0) return true;
    return false;
}

bool arch_runs_level(const struct arch_level *level) {
    uint32_t states = saved_states();
    for (size_t i = 0; i < FEATURE_COUNT; i++)
        if (is_listed(level->features, features[i].name) && !machine_has(&features[i], states)) return false;
    return true;
}

/* Leaf 1's ecx carries OSXSAVE, which the running system decides; ebx the CPU number: left out. */
void arch_identity(uint32_t words[ARCH_IDENTITY_WORDS]) {
    unsigned ignored;
    memset(words, 0, ARCH_IDENTITY_WORDS * sizeof *words);
    (void)__get_cpuid(0x80000002u, &words[0], &words[1], &words[2], &words[3]);
    (void)__get_cpuid(1, &words[4], &ignored, &words[6], &words[7]);
    (void)__get_cpuid_count(7, 0, &words[8], &words[9], &words[10], &words[11]);
    (void)__get_cpuid(0x80000001u, &words[12], &ignored, &words[14], &words[15]);
}
