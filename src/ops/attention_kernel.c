/* The kernels of attention and of its derivative: those of kernels/tensor/attention.metal, of
 * attention_host.metal and attention_host_few.metal (on CPUs), attention_split.metal,
 * attention_warpgroups.metal and attention_vjp_warpgroups.metal. Finds and launches them. */
#include "kernels/kernel_text.h"
#include "ops/attention.h"
#include "ops/program.h"

/* By kernel: its name, and the text that has it. */
static const struct {
    const char *name, *text;
} kernels[KERNEL_COUNT] = {
    [FORWARD] = {"smelt_attention", kernel_text_attention},
    [ON_HOST] = {"smelt_attention_host", kernel_text_attention_host},
    [ON_HOST_FEW] = {"smelt_attention_host_few", kernel_text_attention_host_few},
    [DOTS] = {"smelt_attention_dots", kernel_text_attention},
    [BY_Q] = {"smelt_attention_vjp_q", kernel_text_attention},
    [BY_KV] = {"smelt_attention_vjp_kv", kernel_text_attention},
    [SPLIT] = {"smelt_attention_split", kernel_text_attention_split},
    [JOIN] = {"smelt_attention_join", kernel_text_attention_split},
    [BY_WARPGROUPS] = {"smelt_attention_warpgroups", kernel_text_attention_warpgroups},
    [VJP_NOTES] = {"smelt_attention_vjp_notes", kernel_text_attention_vjp_warpgroups},
    [VJP_BY_WARPGROUPS] = {"smelt_attention_vjp_warpgroups", kernel_text_attention_vjp_warpgroups},
    [VJP_ROUND] = {"smelt_attention_vjp_round", kernel_text_attention_vjp_warpgroups},
};

static bool is_forward(enum attention_kernel kernel) {
    return kernel <= ON_HOST_FEW || kernel == SPLIT || kernel == BY_WARPGROUPS;
}

static bool has_mask(enum attention_kernel kernel) {
    return kernel != DOTS && kernel != JOIN && kernel != VJP_NOTES && kernel != VJP_ROUND;
}

/* Whether the rows of a tile are counted one by one, not in steps of 16. */
static bool has_lines(enum attention_kernel kernel) {
    return kernel == SPLIT || kernel == JOIN || kernel == ON_HOST_FEW;
}

static void write_kernels(struct text *text, const void *context) {
    const struct program_key *key = context;
    static const char *const names[] = {"DEPTH", "ROWS", "KEYS"};
    text_addf(text, "#define ATTENTION_TYPE %s\n", program_type((smelt_dtype)key->dtypes[0]));
    bool split = key->operation == SPLIT || key->operation == JOIN;
    for (int i = 0; i < 3; i++)
        text_addf(text, "#define ATTENTION_%s %d\n", names[i],
                  (i == 1 && has_lines((enum attention_kernel)key->operation) ? 1 : 16) * key->operands[i]);
    text_addf(text, "#define ATTENTION_MASK %d\n#define ATTENTION_SINKS %d\n", key->operands[3],
              key->operands[4]);
    if (key->operands[3] == MASK_SUMS) text_addf(text, "#define ATTENTION_WIDTH %d\n", key->form);
    text_addf(text, "#define ATTENTION_%s %d\n#define ATTENTION_FULL %d\n", split ? "WIDE" : "PLACED",
              key->operands[5], key->operands[6]);
    text_add(text, kernel_text_attention_parts);
    text_add(text, kernels[key->operation].text);
}

static smelt_status find_kernel(const struct attention *a, enum attention_kernel kernel, int rows, int keys,
                                smelt_function **function) {
    bool split = kernel == SPLIT || kernel == JOIN;
    int depth = attention_round_up(attention_depth(a), attention_is_warpgroups(kernel) || split ? 64 : 16);
    if (split && depth > 128) depth = 256; /* lanes hold equal parts of it */
    struct program_key key = {
        .family = PROGRAM_ATTENTION, .operation = kernel, .dtypes = {(uint8_t)a->dtype}};
    key.operands[0] = (uint8_t)(depth / 16);
    key.operands[1] = (uint8_t)(has_lines(kernel) ? rows : rows / 16), key.operands[2] = (uint8_t)(keys / 16);
    key.operands[3] = (uint8_t)(has_mask(kernel) ? a->mask : MASK_NONE);
    key.operands[4] = is_forward(kernel) && a->arrays[SINKS];
    key.operands[5] = split ? kernel == SPLIT && attention_is_aligned(a) : attention_is_placed(kernel);
    key.operands[6] =
        kernel == ON_HOST_FEW && a->size.depth % 32 == 0 && a->size.depth == a->size.value_depth;
    if (key.operands[3] == MASK_SUMS) key.form = (uint16_t)a->arrays[COLUMNS]->shape.size[3];
    return program_get(&key, kernels[kernel].name, write_kernels, &key, function);
}

/* q, k or v, bound from its lowest element to its highest; where its matrices are goes into a->size. */
static smelt_array place_matrices(struct attention *a, enum array_name name) {
    struct matrices *matrices = &a->size.places[name];
    (void)attention_find_matrices(a->arrays[name], matrices);
    return program_span(a->arrays[name], &matrices->first);
}

smelt_status attention_run(struct attention *a, enum attention_kernel kernel,
                           smelt_array *const arrays[KERNEL_ARRAYS]) {
    int rows, keys;
    smelt_function *function;
    smelt_array mask, spans[3], result;
    int64_t first;
    attention_choose_tile(a, kernel, &rows, &keys);
    TRY(find_kernel(a, kernel, rows, keys, &function));
    smelt_dispatch_desc dispatch = {.device = a->call.device, .stream = a->apply.stream};
    attention_choose_groups(a, kernel, rows, keys, &dispatch);
    if (kernel == BY_WARPGROUPS) a->size.tiles = (int)attention_tiles(a);
    for (int i = 0; i < KERNEL_ARRAYS; i++) dispatch.buffers[i].array = arrays[i];
    if (is_forward(kernel) || kernel == JOIN) {
        result = program_span(arrays[3], &first);
        dispatch.buffers[3].array = &result;
    }
    for (int i = Q; i <= V && attention_is_placed(kernel); i++) {
        spans[i] = place_matrices(a, i);
        dispatch.buffers[i].array = &spans[i];
    }
    dispatch.buffers[4] = (smelt_buffer){.bytes = &a->size, .size = sizeof a->size};
    if (a->mask == MASK_SUMS && has_mask(kernel)) {
        dispatch.buffers[10].array = a->arrays[LINES];
        dispatch.buffers[12].array = a->arrays[COLUMNS];
    } else if (a->mask && has_mask(kernel)) {
        mask = program_span(a->arrays[MASK], &a->size.mask_first);
        dispatch.buffers[10].array = &mask;
    }
    if (is_forward(kernel) && a->arrays[SINKS]) dispatch.buffers[11].array = a->arrays[SINKS];
    return program_run(function, &dispatch);
}
