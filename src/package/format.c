/* Packages as bytes: a header with a checksum of everything, and the contents as a stream. */
#include "base/hash.h"
#include "abi/build_id.h"
#include "package/package.h"
#include "package/stream.h"

#include <string.h>

struct header {
    char magic[8];
    uint32_t format;
    uint32_t zero;
    uint64_t size;        /* of all bytes, including these */
    struct hash checksum; /* of all bytes, with this field as zeros */
};

static const char magic[] = SMELT_PACKAGE_MAGIC;
#define MAGIC_BYTES (sizeof magic - 1)

/* The minimal size of an item of each list. */
enum { LEAST_TARGET = 16, LEAST_ENTRY = 36, LEAST_PARAMETER = 24, LEAST_CONSTANT = 60, LEAST_CODE = 124 };

bool package_begins(const char *bytes, size_t size) {
    return size >= MAGIC_BYTES && memcmp(bytes, magic, MAGIC_BYTES) == 0;
}

static struct hash checksum_of(struct header header, const char *bytes, size_t size) {
    struct hasher *hasher = hasher_create();
    header.checksum = (struct hash){0, 0};
    hasher_add_raw(hasher, &header, sizeof header);
    hasher_add_raw(hasher, bytes + sizeof header, size - sizeof header);
    return hasher_finish(hasher);
}

/* ---- Writing. */

static void write_shape(struct text *out, const struct code_shape *shape) {
    write_u32(out, shape->engine);
    write_u32(out, shape->polled);
    write_u32(out, shape->masked);
    write_u32(out, shape->small);
    write_u32(out, shape->rows);
    write_u32(out, shape->multiple);
    for (int d = 0; d < 3; d++) write_u32(out, shape->size[d]);
    write_u32(out, shape->most_threads);
    write_u32(out, shape->folded | shape->aligned << 1 | shape->joined << 2 | shape->distinct << 3 |
                       (uint32_t)shape->tested << 4 | (uint32_t)shape->by_rows << 5 | shape->coarse << 8);
    for (int i = 0; i < SHAPE_MAX_INLINED; i += 4)
        write_u32(out, shape->inlined[i] | (uint32_t)shape->inlined[i + 1] << 8 |
                           (uint32_t)shape->inlined[i + 2] << 16 | (uint32_t)shape->inlined[i + 3] << 24);
}

static void write_entry(struct text *out, const struct package_entry *e) {
    write_string(out, e->entry.host_name);
    write_u32(out, e->max_threads);
    for (int d = 0; d < 3; d++) write_u32(out, e->required_threads[d]);
    write_u32(out, e->has_barrier);
    write_u32(out, (uint32_t)e->entry.parameter_count);
    for (int i = 0; i < e->entry.parameter_count; i++) {
        const struct parameter *p = &e->entry.parameters[i];
        write_u32(out, (uint32_t)p->kind);
        write_string(out, p->name);
        write_string(out, p->index);
        write_string(out, p->attribute);
        write_string(out, p->guard);
        write_u32(out,
                  (uint32_t)p->by_value | (uint32_t)p->by_reference << 1 | (uint32_t)p->is_constant << 2);
    }
    write_u32(out, (uint32_t)e->constant_count);
    for (int i = 0; i < e->constant_count; i++) {
        const struct package_constant *c = &e->constants[i];
        write_string(out, c->name);
        write_u32(out, (uint32_t)c->type);
        write_u32(out, c->required);
        write_u32(out, c->set);
        write_u32(out, (uint32_t)c->value.index);
        write_u32(out, (uint32_t)c->value.dtype);
        write_u32(out, (uint32_t)c->value.count);
        for (int k = 0; k < 4; k++)
            write_u64(out, k < c->value.count || k == 0 ? (uint64_t)c->value.value.integers[k] : 0);
    }
    write_block(out, e->bitcode);
    write_u32(out, (uint32_t)e->code_count);
    for (int i = 0; i < e->code_count; i++) {
        write_u32(out, e->codes[i].target);
        write_shape(out, &e->codes[i].shape);
        write_u32(out, e->codes[i].engine);
        write_block(out, e->codes[i].image);
    }
}

smelt_status package_write(const struct package *package, struct text *out) {
    struct header header = {.format = PACKAGE_FORMAT};
    memcpy(header.magic, magic, MAGIC_BYTES);
    text_append(out, (const char *)&header, sizeof header);
    write_string(out, package->smelt_version);
    write_string(out, package->llvm_version);
    write_string(out, package->bitcode_interface);
    write_string(out, package->code_interface);
    write_string(out, package->source_name);
    write_u32(out, package->math);
    write_u32(out, package->metal_version);
    write_u32(out, (uint32_t)package->target_count);
    for (int i = 0; i < package->target_count; i++) {
        write_u32(out, package->targets[i].kind);
        write_string(out, package->targets[i].name);
        write_string(out, package->targets[i].processor);
        write_string(out, package->targets[i].features);
    }
    write_u32(out, (uint32_t)package->entry_count);
    for (int i = 0; i < package->entry_count; i++) write_entry(out, &package->entries[i]);
    if (out->failed) return fail(SMELT_ERROR_OUT_OF_MEMORY, "the package does not fit in memory");
    header.size = out->length;
    header.checksum = checksum_of(header, out->data, out->length);
    memcpy(out->data, &header, sizeof header);
    return SMELT_OK;
}

/* ---- Reading. A file with a right checksum was written by smelt; the limits below protect against others.
 */

static void *list_of(struct arena *arena, int count, size_t width) {
    return arena_alloc(arena, ((size_t)count + 1) * width);
}

static const char *read_name(struct reader *r, struct arena *arena) {
    const char *name = read_string(r, arena);
    if (!name) r->failed = true;
    return name ? name : "";
}

static void read_shape(struct reader *r, struct code_shape *shape) {
    shape->engine = read_u32(r);
    shape->polled = read_u32(r);
    shape->masked = read_u32(r);
    shape->small = read_u32(r);
    shape->rows = read_u32(r);
    shape->multiple = read_u32(r);
    for (int d = 0; d < 3; d++) shape->size[d] = read_u32(r);
    shape->most_threads = read_u32(r);
    shape->folded = read_u32(r);
    shape->coarse = shape->folded >> 8;
    shape->by_rows = (uint8_t)(shape->folded >> 5 & 3);
    shape->tested = shape->folded >> 4 & 1;
    shape->joined = shape->folded >> 2 & 1;
    shape->distinct = shape->folded >> 3 & 1;
    shape->aligned = shape->folded >> 1 & 1;
    shape->folded &= 1;
    for (int i = 0; i < SHAPE_MAX_INLINED; i += 4) {
        uint32_t four = read_u32(r);
        for (int k = 0; k < 4; k++) shape->inlined[i + k] = (uint8_t)(four >> 8 * k);
    }
}

static void read_parameters(struct reader *r, struct arena *arena, struct entry *entry) {
    int count = read_count(r, LEAST_PARAMETER);
    struct parameter *list = list_of(arena, count, sizeof *list);
    for (int i = 0; i < count && list; i++) {
        uint32_t kind = read_u32(r);
        if (kind > PARAMETER_UNSUPPORTED) r->failed = true;
        list[i].kind = (enum parameter_kind)kind;
        list[i].name = read_name(r, arena);
        list[i].index = read_string(r, arena);
        list[i].attribute = read_string(r, arena);
        list[i].guard = read_string(r, arena);
        uint32_t passed = read_u32(r);
        list[i].by_value = passed & 1;
        list[i].by_reference = passed >> 1 & 1;
        list[i].is_constant = passed >> 2 & 1;
    }
    entry->parameters = list;
    entry->parameter_count = list ? count : 0;
}

static void read_constants(struct reader *r, struct arena *arena, struct package_entry *entry) {
    int count = read_count(r, LEAST_CONSTANT);
    struct package_constant *list = list_of(arena, count, sizeof *list);
    for (int i = 0; i < count && list; i++) {
        list[i].name = read_name(r, arena);
        list[i].type = (smelt_dtype)read_u32(r);
        list[i].required = read_u32(r) != 0;
        list[i].set = read_u32(r) != 0;
        list[i].value.index = (int)read_u32(r);
        list[i].value.dtype = (smelt_dtype)read_u32(r);
        list[i].value.count = (int)read_u32(r);
        for (int k = 0; k < 4; k++) list[i].value.value.integers[k] = (int64_t)read_u64(r);
        if ((unsigned)list[i].value.count > 4) r->failed = true;
        if (list[i].set && !smelt_dtype_bytes(list[i].value.dtype)) r->failed = true;
    }
    entry->constants = list;
    entry->constant_count = list ? count : 0;
}

static void read_codes(struct reader *r, struct arena *arena, int target_count, struct package_entry *entry) {
    int count = read_count(r, LEAST_CODE);
    struct package_code *list = list_of(arena, count, sizeof *list);
    for (int i = 0; i < count && list; i++) {
        list[i].target = read_u32(r);
        read_shape(r, &list[i].shape);
        list[i].engine = read_u32(r);
        list[i].image = read_block(r);
        if (list[i].target >= (uint32_t)target_count) r->failed = true;
    }
    entry->codes = list;
    entry->code_count = list ? count : 0;
}

static void read_contents(struct reader *r, struct package *p) {
    struct arena *arena = &p->arena;
    p->source_name = read_name(r, arena);
    uint32_t math = read_u32(r);
    if (math > SMELT_MATH_FAST) r->failed = true;
    p->math = math > SMELT_MATH_FAST ? SMELT_MATH_SAFE : (smelt_math_mode)math;
    p->metal_version = read_u32(r);
    int count = read_count(r, LEAST_TARGET);
    struct package_target *targets = list_of(arena, count, sizeof *targets);
    for (int i = 0; i < count && targets; i++) {
        targets[i].kind = read_u32(r);
        targets[i].name = read_name(r, arena);
        targets[i].processor = read_name(r, arena);
        targets[i].features = read_name(r, arena);
    }
    p->targets = targets;
    p->target_count = targets ? count : 0;
    count = read_count(r, LEAST_ENTRY);
    struct package_entry *entries = list_of(arena, count, sizeof *entries);
    for (int i = 0; i < count && entries && !r->failed; i++) {
        entries[i].entry.host_name = read_name(r, arena);
        entries[i].max_threads = read_u32(r);
        for (int d = 0; d < 3; d++) entries[i].required_threads[d] = read_u32(r);
        entries[i].has_barrier = read_u32(r) != 0;
        read_parameters(r, arena, &entries[i].entry);
        read_constants(r, arena, &entries[i]);
        entries[i].bitcode = read_block(r);
        read_codes(r, arena, p->target_count, &entries[i]);
    }
    p->entries = entries;
    p->entry_count = entries ? count : 0;
    r->failed |= r->at != r->end;
}

static smelt_status check_header(const char *label, const char *bytes, size_t size) {
    struct header header;
    if (!package_begins(bytes, size)) return fail(SMELT_ERROR_FORMAT, "'%s' is not a smelt package", label);
    if (size < sizeof header)
        return fail(SMELT_ERROR_FORMAT, "package '%s' is truncated: it has %zu bytes, less than its header",
                    label, size);
    memcpy(&header, bytes, sizeof header);
    if (header.format != PACKAGE_FORMAT)
        return fail(SMELT_ERROR_FORMAT,
                    "package '%s' has format %u; this smelt (%s) reads format %d: build it again", label,
                    header.format, smelt_version(), PACKAGE_FORMAT);
    if (header.size != size)
        return fail(SMELT_ERROR_FORMAT, "package '%s' is %s: it has %zu bytes, expected %llu", label,
                    size < header.size ? "truncated" : "damaged", size, (unsigned long long)header.size);
    struct hash found = checksum_of(header, bytes, size);
    if (header.zero || found.low != header.checksum.low || found.high != header.checksum.high)
        return fail(SMELT_ERROR_FORMAT, "package '%s' is damaged: its checksum does not match its contents",
                    label);
    return SMELT_OK;
}

smelt_status package_read(const char *label, const char *bytes, size_t size, struct package *package) {
    TRY(check_header(label, bytes, size));
    struct package out = {0};
    struct reader r = {bytes + sizeof(struct header), bytes + size, false};
    out.smelt_version = read_name(&r, &out.arena);
    out.llvm_version = read_name(&r, &out.arena);
    out.bitcode_interface = read_name(&r, &out.arena);
    out.code_interface = read_name(&r, &out.arena);
    smelt_status status = SMELT_OK;
    if (!r.failed && strcmp(out.bitcode_interface, bitcode_interface) != 0)
        status = fail(
            SMELT_ERROR_FORMAT,
            "package '%s' was built by another build of smelt (version %s, this is %s), whose prelude differs"
            ": build it again",
            label, out.smelt_version, smelt_version());
    else
        read_contents(&r, &out);
    if (status == SMELT_OK && out.arena.failed) status = fail_out_of_memory(size);
    if (status == SMELT_OK && r.failed)
        status = fail(SMELT_ERROR_FORMAT, "package '%s' is damaged: its parts do not match its size", label);
    if (status != SMELT_OK) {
        package_free(&out);
        return status;
    }
    *package = out;
    return SMELT_OK;
}

void package_free(struct package *package) {
    arena_free(&package->arena);
    *package = (struct package){0};
}

bool package_code_fits(const struct package *package) {
    return strcmp(package->code_interface, code_interface) == 0;
}
