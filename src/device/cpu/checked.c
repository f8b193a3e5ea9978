#include "device/cpu/checked.h"
#include "array/array.h"
#include "check/check.h"
#include "check/finding.h"
#include "device/cpu/schedule.h"
#include "device/cpu/tile.h"

static const char *name_of(const struct launch *launch, int parameter) {
    return launch->parameter_name ? launch->parameter_name(launch, parameter) : "";
}

static struct check_argument argument_of(const struct launch *launch, const struct binding *binding,
                                         int parameter, struct shape_text *shape) {
    const struct launch_buffer *buffer = &launch->buffers[binding->index];
    const smelt_array *array = buffer->array;
    *shape = array && array->shape.ndim != 1 ? shape_print(&array->shape) : (struct shape_text){""};
    char *address = launch_address(buffer);
    return (struct check_argument){
        .base = address,
        .start = address - buffer->before,
        .bytes = buffer->span ? buffer->span : buffer->bytes,
        .element = binding->size > 0 ? (uint32_t)binding->size : 1,
        .index = binding->index,
        .undefined = buffer->undefined,
        .name = name_of(launch, parameter),
        .shape = shape->text,
    };
}

static bool accept(const void *context, smelt_finding *finding) {
    const struct launch *launch = context;
    return launch->accept(launch, finding);
}

smelt_status checked_begin(struct cpu_launch *launch) {
    const struct code *code = launch->codes.full;
    if (!code || !engine_traits(code->head.image.engine)->is_checked) return SMELT_OK;
    const struct launch *request = launch->request;
    const struct image *image = &code->head.image;
    findings_publish(NULL);
    struct check_argument arguments[LAUNCH_MAX_BUFFERS];
    struct shape_text shapes[LAUNCH_MAX_BUFFERS];
    int count = 0;
    for (int i = 0; i < image->binding_count; i++)
        if (image->bindings[i].kind == BINDING_BUFFER) {
            arguments[count] = argument_of(request, &image->bindings[i], i, &shapes[count]);
            count++;
        }
    struct check_launch checked = {.kernel = launch->name,
                                   .arguments = arguments,
                                   .argument_count = count,
                                   .also = request->also,
                                   .constants = code->object.memory,
                                   .constant_bytes = code->object.mapped,
                                   .accept = request->accept ? accept : NULL,
                                   .accept_context = request};
    for (int i = 0; i < image->binding_count; i++) {
        const struct binding *binding = &image->bindings[i];
        if (binding->kind == BINDING_THREADGROUP) checked.slot_names[binding->index] = name_of(request, i);
    }
    for (int d = 0; d < 3; d++) checked.groups[d] = request->groups[d];
    smelt_status status = check_open(&checked, &launch->check);
    launch->schedule = schedule_seed();
    if (status == SMELT_OK) return SMELT_OK;
    check_close(launch->check);
    launch->check = NULL;
    return status;
}

smelt_status checked_begin_group(struct worker *worker) {
    const struct cpu_launch *launch = worker->launch;
    const struct group_context *group = &worker->group;
    if (!launch->check) return SMELT_OK;
    uint64_t number =
        ((uint64_t)group->position[2] * group->groups[1] + group->position[1]) * group->groups[0] +
        group->position[0];
    struct check_group checked = {.number = (uint32_t)number,
                                  .memory = worker->threadgroup_memory,
                                  .memory_bytes = launch->threadgroup_total,
                                  .slots = (char *const *)group->threadgroup_slots,
                                  .slot_bytes = launch->threadgroup_bytes,
                                  .slot_count = CPU_MAX_THREADGROUP_SLOTS};
    for (int d = 0; d < 3; d++) {
        checked.position[d] = group->position[d];
        checked.size[d] = group->size[d];
    }
    return check_begin_group(launch->check, &checked);
}

void checked_barrier(const struct worker *worker, const struct standing *waiting,
                     const struct standing *other) {
    struct check *check = worker->launch->check;
    if (!check) return;
    check_barrier_missed(
        check, &(struct check_standing){waiting->thread, BARRIER_LINE(waiting->line), waiting->file},
        &(struct check_standing){other->thread, BARRIER_LINE(other->line), other->file});
}

smelt_status checked_end(struct cpu_launch *launch, smelt_status status) {
    if (!launch->check) return status;
    check_enter(NULL, 0, NULL, 0, 0);
    /* A kernel that ended early or was stopped may not have written everything. */
    bool stopped = __atomic_load_n(&launch->stop, __ATOMIC_RELAXED);
    smelt_status found = check_end(launch->check, status == SMELT_OK && !stopped);
    check_close(launch->check);
    launch->check = NULL;
    return found != SMELT_OK ? found : status;
}

/* ---- Products of tiles. */

void checked_tile_memory(const struct worker *worker, void *memory, size_t bytes) {
    if (worker->launch->check) check_lend(worker->launch->check, memory, bytes);
}

/* A simdgroup's lines may all lie behind the last that exists: `there` is negative then. */
static struct check_lines operand_of(const uint64_t *words, uint32_t bits, uint64_t lines) {
    const uint64_t *own = words;
    int64_t there = (int64_t)own[TILE_LINES];
    return (struct check_lines){.start = (char *)(uintptr_t)own[TILE_DATA] + own[TILE_FIRST] * bits / 8,
                                .lines = there < 0                 ? 0
                                         : (uint64_t)there < lines ? (uint64_t)there
                                                                   : lines,
                                .line_bits = (int64_t)own[TILE_LINE_STRIDE] * bits,
                                .element_bits = (int64_t)own[TILE_TERM_STRIDE] * bits,
                                .width = bits};
}

bool checked_tile(const struct worker *worker, const uint64_t *words, const void *caller) {
    struct check *check = worker->launch->check;
    struct source_line place = {"", 0};
    if (!check) return true;
    (void)object_line(&worker->code->object, (const char *)caller - 1, &place);
    const uint64_t form = words[TILE_FORM];
    struct check_lines left = operand_of(words + TILE_LEFT, tile_kind_bits(form & 255), words[TILE_ROWS]),
                       right = operand_of(words + TILE_RIGHT, tile_kind_bits(form >> 8 & 255),
                                          words[TILE_COLUMNS]);
    uint32_t bits = tile_kind_bits(form >> 16 & 255);
    struct check_lines result = {.start = (char *)(uintptr_t)words[TILE_RESULT],
                                 .lines = words[TILE_ROWS],
                                 .elements = words[TILE_COLUMNS],
                                 .line_bits = (int64_t)words[TILE_RESULT_ROW] * bits,
                                 .element_bits = (int64_t)words[TILE_RESULT_COLUMN] * bits,
                                 .width = bits,
                                 .written = true};
    left.elements = right.elements = words[TILE_TERMS];
    bool inside = words[TILE_LEFT + TILE_HELD] || words[TILE_DEALT_ROWS] ||
                  check_touch(check, &left, place.file, place.line);
    inside = (words[TILE_RIGHT + TILE_HELD] || check_touch(check, &right, place.file, place.line)) && inside;
    if (!words[TILE_RESULT_HELD] && !check_touch(check, &result, place.file, place.line)) return false;
    check_product(check, words, inside, place.file, place.line);
    return inside;
}
