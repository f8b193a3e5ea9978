/* Tuning of shipped operations: their candidates, and jobs on random arrays. */
#include "array/dtype.h"
#include "base/reserved.h"
#include "kernels/matmul/forms.h"
#include "ops/operation.h"
#include "smelt/tune.h"
#include "tune/setting.h"

#include <stdlib.h>
#include <string.h>

#define MOST_CANDIDATES 60

struct operation_space {
    const char *name, *sizes;
    int size_count;
    /* Sizes of tiles to combine, ended by 0; on CPUs, and on GPUs. */
    int64_t numbers[2][2][8];
    /* On GPUs, used instead of `numbers` if not NULL: sets candidate `index`; false: there are fewer. */
    bool (*candidate)(const smelt_tune_job *job, int index, int64_t numbers[SETTING_NUMBERS]);
    /* Creates the job's inputs on its device. */
    smelt_status (*create)(const smelt_tune_job *job, smelt_array *inputs[3]);
    smelt_status (*run)(const smelt_tune_job *job, smelt_array *const inputs[3], smelt_array **result);
};

/* ---- Matmul. */

static smelt_status create_random(const smelt_tune_job *job, smelt_shape shape, uint64_t seed,
                                  smelt_array **array) {
    smelt_array *raw = NULL, *rounded = NULL;
    smelt_status status = smelt_array_uniform(SMELT_FLOAT32, shape, seed, &raw);
    if (status == SMELT_OK) status = smelt_array_convert(raw, job->dtype, &rounded);
    if (status == SMELT_OK) status = smelt_array_to(rounded, job->device, NULL, array);
    smelt_array_release(raw);
    smelt_array_release(rounded);
    return status;
}

static smelt_status create_matrices(const smelt_tune_job *job, smelt_array *inputs[3]) {
    const int64_t *size = job->sizes;
    TRY(create_random(job, (smelt_shape){.ndim = 2, .size = {size[0], size[2]}}, 1, &inputs[0]));
    return create_random(job, (smelt_shape){.ndim = 2, .size = {size[2], size[1]}}, 2, &inputs[1]);
}

static smelt_status multiply(const smelt_tune_job *job, smelt_array *const inputs[3], smelt_array **result) {
    return smelt_apply(&(smelt_apply_desc){.operation = SMELT_OPERATION_MATMUL,
                                           .inputs = {inputs[0], inputs[1]},
                                           .device = job->device},
                       result);
}

/* Each form with K in one part, then with more parts if these are deep enough and not too many. */
static bool matmul_candidate(const smelt_tune_job *job, int index, int64_t numbers[SETTING_NUMBERS]) {
    static const int64_t part_counts[] = {1, 2, 3, 4, 6, 8, 16};
    const int64_t least_depth = 128;
    const double most_groups = 1024;
    int at = 0;
    struct matmul_form form;
    for (int p = 0; p < (int)(sizeof part_counts / sizeof *part_counts); p++)
        for (int i = 0; matmul_form_at(job->dtype, i, &form); i++) {
            double groups = ((double)job->sizes[0] / (double)form.rows + 1) *
                            ((double)job->sizes[1] / (double)form.columns + 1);
            form.parts = part_counts[p];
            if (p && (job->sizes[2] / form.parts < least_depth || groups * (double)form.parts > most_groups))
                continue;
            if (at++ != index) continue;
            memcpy(numbers, (int64_t[]){form.rows, form.columns, form.threads, form.parts},
                   SETTING_NUMBERS * sizeof *numbers);
            return true;
        }
    return false;
}

/* ---- Attention. */

static smelt_status create_heads(const smelt_tune_job *job, smelt_array *inputs[3]) {
    const int64_t *size = job->sizes;
    for (int i = 0; i < 3; i++) {
        smelt_shape shape = {.ndim = 4, .size = {1, size[0], i ? size[2] : size[1], size[3]}};
        TRY(create_random(job, shape, (uint64_t)i + 1, &inputs[i]));
    }
    return SMELT_OK;
}

static smelt_status attend(const smelt_tune_job *job, smelt_array *const inputs[3], smelt_array **result) {
    return smelt_attention(
        &(smelt_attention_desc){
            .q = inputs[0], .k = inputs[1], .v = inputs[2], .scale = 0.125, .device = job->device},
        result, NULL);
}

static const struct operation_space spaces[] = {
    {"matmul",
     "rows, columns, depth",
     3,
     {{{32, 64, 128, 256, 512, 1024}, {64, 128, 256, 512, 1024}}},
     matmul_candidate,
     create_matrices,
     multiply},
    {"attention",
     "batches times heads, rows, keys, size of a head",
     4,
     {{{32, 64}, {64, 128, 256, 512}}, {{16, 32, 64}, {16, 32, 64}}},
     NULL,
     create_heads,
     attend},
};
#define SPACE_COUNT ((int)(sizeof spaces / sizeof *spaces))

const char *smelt_tune_operation_name(int index, const char **sizes) {
    if (index < 0 || index >= SPACE_COUNT) return NULL;
    if (sizes) *sizes = spaces[index].sizes;
    return spaces[index].name;
}

/* ---- A search. */

struct operation_search {
    const smelt_tune_job *job;
    const struct operation_space *space;
    smelt_array *inputs[3], *last;
    smelt_array *first; /* the first candidate's result, on the host: others must be close to it */
    int64_t numbers[MOST_CANDIDATES][SETTING_NUMBERS];
    char *words[MOST_CANDIDATES];
    int count;
};

static smelt_status run(int index, void *context) {
    struct operation_search *s = context;
    smelt_array_release(s->last);
    s->last = NULL;
    tune_setting_force(s->numbers[index]);
    smelt_status status = s->space->run(s->job, s->inputs, &s->last);
    tune_setting_force(NULL);
    return status;
}

static bool are_close(smelt_array *a, smelt_array *b) {
    smelt_array *result = NULL;
    smelt_status status = smelt_apply(&(smelt_apply_desc){.operation = SMELT_OPERATION_ALL_CLOSE,
                                                          .inputs = {a, b},
                                                          .numbers = {1e-2, 1e-2},
                                                          .device = "cpu"},
                                      &result);
    bool close = status == SMELT_OK && *(const bool *)smelt_array_data(result);
    smelt_array_release(result);
    return close;
}

static bool check(int index, void *context) {
    struct operation_search *s = context;
    smelt_array *host;
    if (smelt_array_to(s->last, "cpu", NULL, &host) != SMELT_OK) return false;
    if (index == 0) s->first = smelt_array_retain(host);
    bool right = !s->first || are_close(host, s->first);
    smelt_array_release(host);
    return right;
}

static void tell(const smelt_tune_progress *progress, void *context) {
    const struct operation_search *s = context;
    s->job->progress(progress, s->job->context);
}

/* Appends all pairs of tile sizes that differ within the job's sizes. */
static void list_tiles(struct operation_search *s, bool gpu) {
    const int64_t(*numbers)[8] = s->space->numbers[gpu];
    for (int i = 0; numbers[0][i]; i++)
        for (int j = 0; numbers[1][j] && s->count < MOST_CANDIDATES; j++) {
            bool rows_repeat = i > 0 && numbers[0][i - 1] >= s->job->sizes[s->space->size_count == 4];
            bool columns_repeat =
                j > 0 && numbers[1][j - 1] >= s->job->sizes[1 + (s->space->size_count == 4)];
            if (rows_repeat || columns_repeat) continue;
            s->numbers[s->count][0] = numbers[0][i];
            s->numbers[s->count++][1] = numbers[1][j];
        }
}

/* The first candidate, all zeros, is the operation's own choice. */
static smelt_status list(struct operation_search *s) {
    bool gpu = strncmp(s->job->device, "cpu", 3) != 0, listed = gpu && s->space->candidate;
    s->count = 1;
    while (listed && s->count < MOST_CANDIDATES &&
           s->space->candidate(s->job, s->count - 1, s->numbers[s->count]))
        s->count++;
    if (!listed) list_tiles(s, gpu);
    for (int i = 0; i < s->count; i++) {
        struct text words = {0};
        tune_setting_words(s->numbers[i], listed ? SETTING_NUMBERS : 2, &words);
        if (words.failed) text_free(&words);
        if (!words.data) return fail_out_of_memory(1);
        s->words[i] = words.data;
    }
    return SMELT_OK;
}

static smelt_status find_space(const smelt_tune_job *job, const struct operation_space **space) {
    struct text names = {0};
    *space = NULL;
    for (int i = 0; i < SPACE_COUNT; i++) {
        if (job->operation && strcmp(spaces[i].name, job->operation) == 0) *space = &spaces[i];
        text_addf(&names, "%s%s", i ? " or " : "", spaces[i].name);
    }
    smelt_status status = SMELT_OK;
    if (!*space)
        status = fail(SMELT_ERROR_INVALID_ARGUMENT, "tuning: operation '%s' is unknown; expected %s",
                      job->operation ? job->operation : "NULL", text_string(&names));
    text_free(&names);
    return status;
}

static smelt_status check_job(const smelt_tune_job *job, const struct operation_space *space) {
    if (job->dtype != SMELT_FLOAT32 && job->dtype != SMELT_FLOAT16 && job->dtype != SMELT_BFLOAT16)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "tuning '%s': dtype '%s' is not supported; expected float32, float16 or bfloat16",
                    space->name, smelt_dtype_name(job->dtype));
    for (int i = 0; i < space->size_count; i++)
        if (job->sizes[i] < 1)
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        "tuning '%s': size %d is %lld; expected at least 1 (%s)", space->name, i,
                        (long long)job->sizes[i], space->sizes);
    return SMELT_OK;
}

static smelt_status search(struct operation_search *s, struct text *key, smelt_tune_result *result) {
    const smelt_tune_job *job = s->job;
    struct tune_job words = {s->space->name, job->device, job->dtype, {0}, s->space->size_count};
    memcpy(words.sizes, job->sizes, sizeof words.sizes);
    TRY(list(s));
    tune_setting_key(&words, key);
    if (key->failed) return fail_out_of_memory(1);
    TRY(s->space->create(job, s->inputs));
    return smelt_tune(&(smelt_tune_desc){.name = s->space->name,
                                         .key = text_string(key),
                                         .device = job->device,
                                         .candidates = (const char *const *)s->words,
                                         .count = s->count,
                                         .run = run,
                                         .check = check,
                                         .progress = job->progress ? tell : NULL,
                                         .context = s,
                                         .budget = job->budget,
                                         .again = job->again,
                                         .interrupt = job->interrupt},
                      result);
}

static void end(struct operation_search *s) {
    for (int i = 0; i < 3; i++) smelt_array_release(s->inputs[i]);
    smelt_array_release(s->first);
    smelt_array_release(s->last);
    for (int i = 0; i < s->count; i++) free(s->words[i]);
}

smelt_status smelt_tune_operation(const smelt_tune_job *given, char **words, smelt_tune_result *result) {
    const struct operation_space *space;
    if (!given || !result)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "tuning: %s is NULL", given ? "result" : "job");
    TRY(reserved_check(smelt_tune_job, given));
    smelt_tune_job job = *given;
    if (!job.device) job.device = "cpu";
    if (!smelt_device_description(job.device)) return SMELT_ERROR_NO_DEVICE;
    TRY(find_space(&job, &space));
    TRY(check_job(&job, space));
    struct operation_search s = {.job = &job, .space = space};
    struct text key = {0};
    smelt_status status = search(&s, &key, result);
    if (status == SMELT_OK && words) {
        *words = string_copy(s.words[result->index], strlen(s.words[result->index]));
        if (!*words) status = fail_out_of_memory(1);
    }
    text_free(&key);
    end(&s);
    return status;
}
