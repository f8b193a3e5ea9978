#include "tune/setting.h"
#include "tune/machine.h"
#include "tune/store.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Settings that were looked up, found or not: a table that forgets. */
#define SLOT_COUNT 512

struct slot {
    const char *operation; /* NULL: empty */
    char device[16];
    smelt_dtype dtype;
    uint8_t classes[SETTING_SIZES];
    bool found;
    int64_t numbers[SETTING_NUMBERS];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct slot slots[SLOT_COUNT];
static unsigned generation; /* of the store, when the slots were filled */
static _Thread_local const int64_t *forced;

void tune_setting_force(const int64_t *numbers) {
    forced = numbers;
}

int tune_size_class(int64_t size) {
    return size <= 1 ? 0 : 64 - __builtin_clzll((uint64_t)size - 1);
}

void tune_setting_key(const struct tune_job *job, struct text *key) {
    text_add(key, smelt_dtype_name(job->dtype));
    for (int i = 0; i < job->size_count; i++)
        text_addf(key, "%s%" PRIu64, i ? "x" : " ", UINT64_C(1) << tune_size_class(job->sizes[i]));
}

void tune_setting_words(const int64_t *numbers, int count, struct text *words) {
    for (int i = 0; i < count; i++) text_addf(words, "%s%" PRId64, i ? "," : "", numbers[i]);
}

static bool read_words(const char *words, int64_t numbers[SETTING_NUMBERS]) {
    for (int i = 0; i < SETTING_NUMBERS; i++) {
        char *end;
        numbers[i] = strtoll(words, &end, 10);
        if (end == words || (*end && *end != ',')) return false;
        if (!*end) return true;
        words = end + 1;
    }
    return false;
}

/* Sets `kind` to the kind of machine that defaults are for: a GPU's compute capability, or the width of a
 * CPU's vectors and its threads, rounded up to a power of two. Empty: defaults do not exist for it. */
static void name_kind(const char *device, char kind[32]) {
    const char *description = smelt_device_description(device);
    int major, minor;
    *kind = 0;
    if (strncmp(device, "cpu", 3) == 0) {
        int bits = smelt_device_vector_bits(device);
        if (bits >= 256)
            snprintf(kind, 32, "%s %d", bits == 512 ? "avx512" : "avx2",
                     1 << tune_size_class(smelt_device_threads(device)));
        return;
    }
    const char *capability = description ? strstr(description, "compute capability ") : NULL;
    if (capability && sscanf(capability, "compute capability %d.%d", &major, &minor) == 2)
        snprintf(kind, 32, "sm_%d%d", major, minor);
}

static bool look_up(const struct tune_job *job, int64_t numbers[SETTING_NUMBERS]) {
    char machine[HASH_HEX_LENGTH + 1], kind[32];
    struct text key = {0}, words = {0};
    const int64_t *usual;
    tune_setting_key(job, &key);
    bool found = tune_machine(job->device, machine) == SMELT_OK &&
                 store_find(machine, job->operation, text_string(&key), &words) &&
                 read_words(text_string(&words), numbers);
    name_kind(job->device, kind);
    usual = found ? NULL : tune_default(kind, job->operation, text_string(&key));
    if (usual) memcpy(numbers, usual, SETTING_NUMBERS * sizeof *numbers);
    text_free(&key);
    text_free(&words);
    return found || usual;
}

static struct slot slot_for(const struct tune_job *job) {
    struct slot slot = {.operation = job->operation, .dtype = job->dtype};
    memcpy(slot.device, job->device, strnlen(job->device, sizeof slot.device - 1));
    for (int i = 0; i < job->size_count; i++) slot.classes[i] = (uint8_t)tune_size_class(job->sizes[i]);
    return slot;
}

static unsigned place_of(const struct slot *slot) {
    unsigned hash = (unsigned)slot->dtype * 31 + (unsigned char)*slot->operation;
    for (int i = 0; i < SETTING_SIZES; i++) hash = hash * 33 + slot->classes[i];
    for (const char *c = slot->device; *c; c++) hash = hash * 33 + (unsigned char)*c;
    return hash % SLOT_COUNT;
}

static bool is_same(const struct slot *a, const struct slot *b) {
    return a->operation && strcmp(a->operation, b->operation) == 0 && strcmp(a->device, b->device) == 0 &&
           a->dtype == b->dtype && memcmp(a->classes, b->classes, sizeof a->classes) == 0;
}

bool tune_setting(const struct tune_job *job, int64_t numbers[SETTING_NUMBERS]) {
    if (forced) {
        memcpy(numbers, forced, SETTING_NUMBERS * sizeof *numbers);
        return true;
    }
    struct slot wanted = slot_for(job), *slot = &slots[place_of(&wanted)];
    unsigned now = store_generation();
    pthread_mutex_lock(&lock);
    if (generation != now) memset(slots, 0, sizeof slots);
    generation = now;
    if (is_same(slot, &wanted)) {
        wanted = *slot;
        pthread_mutex_unlock(&lock);
    } else {
        pthread_mutex_unlock(&lock);
        wanted.found = look_up(job, wanted.numbers);
        pthread_mutex_lock(&lock);
        if (generation == now) *slot = wanted;
        pthread_mutex_unlock(&lock);
    }
    if (wanted.found) memcpy(numbers, wanted.numbers, sizeof wanted.numbers);
    return wanted.found;
}
