/* Reads the description of an access that failed a test from the GPU, and makes it a finding (outside.h). */
#include "device/cuda/outside.h"
#include "abi/cpu_context.h"
#include "check/finding.h"
#include "device/cuda/log.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of the name of a file or of a variable. */
#define LONGEST_TEXT 300
#define MOST_SITES 4096

/* ---- Constants of the code. */

/* A text that ends with 0. It is read byte by byte: the memory after it may not be readable. */
static const char *read_text(struct flight *flight, const char *address, char text[LONGEST_TEXT + 1]) {
    size_t length = 0;
    memset(text, 0, LONGEST_TEXT + 1);
    while (address && length < LONGEST_TEXT && !memchr(text, 0, length)) {
        if (cuda_copy_out(flight->stream, text + length, (CUdeviceptr)(uintptr_t)address + length, 1) !=
            SMELT_OK)
            break;
        length++;
    }
    return text;
}

/* The first of the sites whose access misses the array. */
static smelt_status read_site(struct flight *flight, const struct cuda_stop *stop, struct access_site *site) {
    if (stop->found == CUDA_FOUND_MISALIGNED)
        return cuda_copy_out(flight->stream, site, stop->sites, sizeof *site);
    for (int i = 0; i < MOST_SITES; i++) {
        TRY(cuda_copy_out(flight->stream, site, stop->sites + (size_t)i * sizeof *site, sizeof *site));
        uint64_t offset = stop->address + site->offset - stop->start;
        if (offset > stop->extent || site->bytes > stop->extent - offset || !site->left) break;
    }
    return SMELT_OK;
}

/* ---- The array. */

struct missed {
    const char *name;
    int64_t element;          /* bytes */
    uint64_t base;            /* the address of element 0; 0: not known */
    const smelt_array *array; /* NULL: none */
};

/* Whether an argument is the array: by its number, or by where its memory lies. */
static bool is_argument(const struct flight *flight, const struct cuda_stop *stop,
                        const struct access_site *site, uint32_t slot) {
    const struct cuda_slot *own = &flight->code->slots[slot];
    const struct cuda_extent *extents =
        (const struct cuda_extent *)&flight->parameters.head.slots[flight->code->slot_count];
    if (site->object == ACCESS_THREADGROUP_ARGUMENT) return own->threadgroup && own->index == site->slot;
    if (own->threadgroup) return false;
    if (site->object == ACCESS_BUFFER) return own->index == site->slot;
    if (site->object != ACCESS_UNKNOWN) return false;
    if (stop->found == CUDA_FOUND_MISALIGNED)
        return stop->address - extents[slot].start < extents[slot].bytes;
    return extents[slot].start == stop->start && extents[slot].bytes == stop->extent;
}

/* The parameter that the slot belongs to. */
static int parameter_of(const struct image *image, const struct cuda_slot *slot) {
    int kind = slot->threadgroup ? BINDING_THREADGROUP : BINDING_BUFFER;
    for (int i = 0; i < image->binding_count; i++)
        if ((int)image->bindings[i].kind == kind && image->bindings[i].index == slot->index) return i;
    return -1;
}

static struct missed missed_by(struct flight *flight, const struct cuda_stop *stop,
                               const struct access_site *site, char text[LONGEST_TEXT + 1]) {
    const struct launch *request = flight->request;
    const struct image *image = &flight->code->head.image;
    struct missed missed = {"memory", 1, stop->start, NULL};
    for (uint32_t i = 0; i < flight->code->slot_count; i++) {
        if (!is_argument(flight, stop, site, i)) continue;
        int parameter = parameter_of(image, &flight->code->slots[i]);
        const char *name =
            parameter >= 0 && request->parameter_name ? request->parameter_name(request, parameter) : "";
        if (*name) missed.name = name;
        if (parameter >= 0 && image->bindings[parameter].size > 0)
            missed.element = image->bindings[parameter].size;
        if (flight->code->slots[i].threadgroup) return missed;
        missed.base = flight->parameters.head.slots[i];
        missed.array = request->buffers[flight->code->slots[i].index].array;
        return missed;
    }
    if (site->element) missed.element = site->element;
    if (site->name)
        missed.name = read_text(flight, site->name, text);
    else if (site->object == ACCESS_PRIVATE)
        missed.name = "private array";
    return missed;
}

/* ---- The finding. */

static bool accept(const void *context, smelt_finding *finding) {
    const struct launch *launch = context;
    return !launch->accept || launch->accept(launch, finding);
}

static smelt_status describe(struct flight *flight, const struct cuda_stop *stop, struct findings *findings) {
    struct access_site site;
    char file[LONGEST_TEXT + 1], name[LONGEST_TEXT + 1];
    bool is_new, misaligned = stop->found == CUDA_FOUND_MISALIGNED;
    TRY(read_site(flight, stop, &site));
    struct missed missed = missed_by(flight, stop, &site, name);
    struct check_site place = {.file = read_text(flight, site.file, file), .line = site.line};
    struct finding *finding = findings_add(findings, misaligned ? FINDING_MISALIGNED : FINDING_OUT_OF_BOUNDS,
                                           &place, NULL, NULL, &is_new);
    if (!finding) return fail_out_of_memory(sizeof *finding);
    smelt_finding *told = &finding->told;
    struct log_place thread = cuda_log_place(flight, stop->group, (uint32_t)stop->thread);
    uint64_t group = stop->group;
    for (int d = 0; d < 3; d++) {
        uint32_t groups = flight->parameters.head.groups[d];
        told->threadgroup[d] = (uint32_t)(d < 2 ? group % groups : group);
        told->thread[d] = thread.thread[d] - told->threadgroup[d] * flight->request->group_size[d];
        group /= groups;
    }
    int64_t offset = (int64_t)(stop->address + site.offset - missed.base);
    if (offset < 0) offset += (int64_t)site.wrap;
    told->argument = findings_text(findings, "%s", missed.name);
    told->has_index = missed.base != 0 || site.object == ACCESS_PRIVATE; /* its addresses are offsets */
    /* Rounded down: an access in front of the array has a negative index. */
    if (told->has_index) told->index = offset / missed.element - (offset % missed.element < 0);
    bool shaped = missed.array && missed.array->shape.ndim != 1;
    if (misaligned) {
        told->message = findings_misaligned(findings, told, site.writes ? "writes" : "reads", stop->extent);
        return SMELT_OK;
    }
    told->message = findings_outside(findings, told, site.writes ? "writes" : "reads",
                                     site.bytes > (uint64_t)missed.element ? site.bytes : 0,
                                     stop->extent / (uint64_t)missed.element,
                                     shaped ? shape_print(&missed.array->shape).text : "");
    return SMELT_OK;
}

smelt_status cuda_outside_read(struct flight *flight) {
    struct cuda_stop stop;
    struct findings *findings = calloc(1, sizeof *findings);
    if (!findings) return fail_out_of_memory(sizeof *findings);
    smelt_status status = cuda_copy_out(flight->stream, &stop, flight->parameters.head.stop, sizeof stop);
    if (status == SMELT_OK && stop.found != CUDA_FOUND_NOTHING) status = describe(flight, &stop, findings);
    smelt_status found = findings_end(findings, flight->executable->name, accept, flight->request);
    return status == SMELT_OK ? found : status;
}
