/* Undefined values: the shadow of memory, where they come from, and what must not depend on them. */
#include "check/state.h"

#include <stdlib.h>
#include <string.h>

/* ---- Where they come from. */

uint32_t undefined_origin(struct check *check, enum origin_kind kind, const void *what) {
    struct origin *origins = check->origins;
    uint32_t *recent = &check->recent_origins[((uintptr_t)what >> 3) % RECENT_ORIGINS];
    uint32_t last = *recent;
    if (last && origins[last].kind == kind && origins[last].what == what) return last;
    for (uint32_t i = check->origin_count; i > 0; i--)
        if (origins[i].kind == kind && origins[i].what == what) return *recent = i;
    if (check->origin_count + 1 >= check->origin_room) {
        uint32_t room = check->origin_room ? 2 * check->origin_room : 64;
        struct origin *grown = realloc(origins, room * sizeof *grown);
        check->out_of_memory |= !grown;
        if (!grown) return 0;
        check->origins = origins = grown;
        check->origin_room = room;
    }
    origins[++check->origin_count] = (struct origin){kind, what};
    return *recent = check->origin_count;
}

static const struct origin *origin_at(const struct check *check, uint32_t number) {
    return number && number <= check->origin_count ? &check->origins[number] : NULL;
}

void undefined_mark(char *shadow, uint32_t *origins, size_t offset, uint64_t bytes, uint32_t origin) {
    memset(shadow + offset, 0xff, bytes);
    for (size_t i = offset / 4; bytes && i <= (offset + bytes - 1) / 4; i++) origins[i] = origin;
}

/* ---- The shadow of memory. */

static struct check_shadow shadow_of(char *address, uint64_t bytes) {
    struct check *check = check_this;
    const struct region *last = check->last;
    struct stack *stack = check->stack;
    if (last && address >= last->start && address + bytes <= last->end) {
        size_t offset = (size_t)(address - last->start);
        return (struct check_shadow){last->shadow + offset, last->origins + offset / 4};
    }
    if (address >= stack->start && address + bytes <= stack->end) {
        size_t offset = (size_t)(address - stack->start);
        return (struct check_shadow){stack->shadow + offset, stack->origins + offset / 4};
    }
    if (address >= check->scratch.start && address + bytes <= check->scratch.end) {
        size_t offset = (size_t)(address - check->scratch.start);
        return (struct check_shadow){check->scratch.shadow + offset, check->scratch.origins + offset / 4};
    }
    if (address >= check->lent.start && address + bytes <= check->lent.end) {
        size_t offset = (size_t)(address - check->lent.start);
        return (struct check_shadow){check->lent.shadow + offset, check->lent.origins + offset / 4};
    }
    struct region *region = memories_region(check, address);
    if (region && address + bytes <= region->end) {
        size_t offset = (size_t)(address - region->start);
        return (struct check_shadow){region->shadow + offset, region->origins + offset / 4};
    }
    const struct stack *elsewhere = &check->elsewhere;
    size_t most = (size_t)(elsewhere->end - elsewhere->start);
    memset(elsewhere->shadow, 0, bytes < most ? bytes : most);
    return (struct check_shadow){elsewhere->shadow, elsewhere->origins};
}

/* A vector may be undefined in part: the origin is that of the first word with an undefined byte. */
static struct check_shadow shadow_to_load(char *address, uint64_t bytes) {
    struct check_shadow from = shadow_of(address, bytes);
    uint32_t *origins = from.origins;
    for (uint64_t at = 0; at < bytes; at++) {
        const char *shadow = from.shadow + at;
        if (at && (uintptr_t)shadow % 4 == 0) origins++;
        if (!*shadow) continue;
        from.origins = origins;
        break;
    }
    return from;
}

#define SHADOW_FUNCTIONS(bytes)                                    \
    struct check_shadow smelt_check_load_##bytes(char *address) {  \
        return shadow_of(address, bytes);                          \
    }                                                              \
    struct check_shadow smelt_check_store_##bytes(char *address) { \
        return shadow_of(address, bytes);                          \
    }
SHADOW_FUNCTIONS(1)
SHADOW_FUNCTIONS(2)
SHADOW_FUNCTIONS(4)

struct check_shadow smelt_check_load_8(char *address) {
    struct check_shadow from = shadow_of(address, 8);
    uint64_t shadow;
    memcpy(&shadow, from.shadow, sizeof shadow);
    bool only_high_half = shadow && !(shadow & UINT32_MAX);
    return only_high_half ? shadow_to_load(address, 8) : from;
}
struct check_shadow smelt_check_store_8(char *address) {
    return shadow_of(address, 8);
}

struct check_shadow smelt_check_load_n(char *address, uint64_t bytes) {
    return shadow_to_load(address, bytes);
}
struct check_shadow smelt_check_store_n(char *address, uint64_t bytes) {
    return shadow_of(address, bytes);
}

static bool is_followed(const char *shadow) {
    return shadow != check_this->elsewhere.shadow;
}

bool undefined_in(char *address, uint64_t bytes, unsigned char mask, uint32_t *origin) {
    struct check_shadow from = shadow_of(address, bytes);
    if (!is_followed(from.shadow)) return false;
    for (uint64_t at = 0; at < bytes; at++) {
        if (!((unsigned char)from.shadow[at] & mask)) continue;
        *origin = from.origins[((uintptr_t)address % 4 + at) / 4];
        return true;
    }
    return false;
}

void undefined_set(char *address, uint64_t bytes, uint32_t origin) {
    struct check_shadow to = shadow_of(address, bytes);
    if (is_followed(to.shadow)) undefined_mark(to.shadow, to.origins, 0, bytes, origin);
}

void smelt_check_poison(char *address, uint64_t bytes, const char *name) {
    struct check *check = check_this;
    struct check_shadow to = shadow_of(address, bytes);
    if (!is_followed(to.shadow)) return;
    undefined_mark(to.shadow, to.origins, 0, bytes, undefined_origin(check, ORIGIN_ARRAY, name));
}

void smelt_check_unpoison(char *address, uint64_t bytes) {
    struct check_shadow to = shadow_of(address, bytes);
    if (is_followed(to.shadow)) memset(to.shadow, 0, bytes);
}

uint32_t smelt_check_chain(uint32_t origin) {
    return origin;
}

/* What goes to an argument is used. */
static void tell_outside(const char *to, const struct check_shadow *from, uint64_t bytes) {
    struct check *check = check_this;
    const struct region *region = memories_region(check, to);
    if (!region || region == &check->threadgroup) return;
    for (uint64_t i = 0; i < bytes; i++) {
        const struct origin *origin = from->shadow[i] ? origin_at(check, from->origins[i / 4]) : NULL;
        if (!origin || origin->kind != ORIGIN_HELD) continue;
        findings_tell(check->findings, (struct finding *)origin->what);
        return;
    }
}

static void copy_shadow(char *to, const char *from, uint64_t bytes) {
    struct check_shadow a = shadow_of(to, bytes), b = shadow_of((char *)from, bytes);
    if (is_followed(b.shadow)) tell_outside(to, &b, bytes);
    if (!is_followed(a.shadow)) return;
    if (!is_followed(b.shadow)) {
        memset(a.shadow, 0, bytes);
        return;
    }
    memmove(a.shadow, b.shadow, bytes);
    memmove(a.origins, b.origins, (bytes + 3) / 4 * sizeof *a.origins);
}

void *smelt_check_copy(char *to, const char *from, uint64_t bytes) {
    copy_shadow(to, from, bytes);
    return memcpy(to, from, bytes);
}

void *smelt_check_move(char *to, const char *from, uint64_t bytes) {
    copy_shadow(to, from, bytes);
    return memmove(to, from, bytes);
}

void *smelt_check_set(char *to, int32_t value, uint64_t bytes) {
    smelt_check_unpoison(to, bytes);
    return memset(to, value, bytes);
}

/* ---- Values in registers. */

struct check_parameters *smelt_check_parameters(void) {
    struct check *check = check_this;
    struct check_parameters **own = &check->parameters[check->thread];
    if (!*own) *own = memories_map(sizeof **own);
    check->out_of_memory |= !*own;
    return *own ? *own : check->spare;
}

uint64_t smelt_check_undefined(const struct check_site *site) {
    struct check_parameters *parameters = smelt_check_parameters();
    parameters->result[0] = UINT64_MAX;
    parameters->result_origin = undefined_origin(check_this, ORIGIN_VARIABLE, site);
    return UINT64_C(0xa5a5a5a5a5a5a5a5);
}

/* ---- What must not depend on them. */

/* accessed: the threadgroup array that is accessed, if it has a name. */
static const char *what_is(struct check *check, const struct origin *origin, const char *accessed,
                           smelt_finding *told) {
    if (!origin) return "of unknown origin";
    const struct check_site *site = origin->what;
    const struct check_argument *argument = origin->what;
    switch (origin->kind) {
    case ORIGIN_HELD:
        break;
    case ORIGIN_VARIABLE:
        told->argument = findings_text(check->findings, "%s", site->name ? site->name : "");
        told->other_file = findings_text(check->findings, "%s", site->file);
        told->other_line = (int)site->line;
        told->other_column = (int)site->column;
        return findings_text(check->findings, "variable '%s' of line %u", told->argument, site->line);
    case ORIGIN_ARRAY: {
        const char *name = origin->what;
        told->argument = findings_text(check->findings, "%.*s", (int)strcspn(name, "."), name);
        return findings_text(check->findings, "array '%s'", told->argument);
    }
    case ORIGIN_ARGUMENT:
        told->argument = findings_text(check->findings, "%s", argument->name);
        return findings_text(check->findings, "output '%s'", argument->name);
    case ORIGIN_THREADGROUP:
        if (origin->what) accessed = origin->what;
        if (!accessed || !*accessed) return "threadgroup memory";
        told->argument = findings_text(check->findings, "%s", accessed);
        return findings_text(check->findings, "threadgroup memory '%s'", accessed);
    }
    return "of unknown origin";
}

void undefined_report(struct check *check, uint32_t number, const struct check_site *site, const char *what) {
    bool is_new;
    const struct origin *origin = origin_at(check, number);
    if (origin && origin->kind == ORIGIN_HELD) {
        findings_tell(check->findings, (struct finding *)origin->what);
        return;
    }
    struct finding *finding = findings_add(check->findings, FINDING_UNINITIALISED, site, NULL,
                                           origin ? origin->what : NULL, &is_new);
    if (!is_new) return;
    check_place(check, &finding->told);
    const char *source = what_is(check, origin, site->name, &finding->told);
    finding->told.message =
        findings_text(check->findings, "%s a value that was never set: %s (thread (%u, %u, %u))", what,
                      source, finding->told.thread[0], finding->told.thread[1], finding->told.thread[2]);
}

void smelt_check_used(uint32_t origin, const struct check_site *site) {
    undefined_report(check_this, origin, site, "a branch or an address depends on");
}

void smelt_check_changed(char *address, uint64_t bytes, const struct check_site *site) {
    struct check_shadow from = shadow_to_load(address, bytes);
    for (uint64_t i = 0; i < bytes; i++) {
        if (!from.shadow[i]) continue;
        undefined_report(check_this, *from.origins, site, "an atomic operation changes");
        return;
    }
}

void smelt_check_stored(uint64_t value, const struct check_site *site) {
    struct check_parameters *parameters = smelt_check_parameters();
    (void)value;
    if (parameters->parameters[0])
        undefined_report(check_this, parameters->origins[0], site, "the kernel stores");
}

void smelt_check_stored_at(uint64_t value, const struct check_site *site, const char *address) {
    struct check *check = check_this;
    if (!smelt_check_parameters()->parameters[0]) return;
    const struct region *region = memories_region(check, address);
    if (region && region != &check->threadgroup) smelt_check_stored(value, site);
}

void smelt_check_passed(uint64_t value) {
    struct check *check = check_this;
    const struct check_parameters *parameters = smelt_check_parameters();
    const struct origin *origin = parameters->parameters[0] ? origin_at(check, parameters->origins[0]) : NULL;
    (void)value;
    if (origin && origin->kind == ORIGIN_HELD) findings_tell(check->findings, (struct finding *)origin->what);
}

/* ---- What nobody wrote. */

static void look_at(struct check *check, const struct check_argument *argument) {
    const struct region *region = memories_region(check, argument->start);
    if (!region) return;
    size_t first = (size_t)(argument->start - region->start);
    uint64_t unwritten = 0, first_element = 0;
    for (uint64_t b = 0; b + argument->element <= argument->bytes; b += argument->element) {
        bool undefined = (unsigned char)region->shadow[first + b] == 0xff &&
                         origin_at(check, region->origins[(first + b) / 4])->kind == ORIGIN_ARGUMENT;
        if (undefined && !unwritten++) first_element = b / argument->element;
    }
    bool is_new;
    struct finding *finding =
        unwritten ? findings_add(check->findings, FINDING_UNWRITTEN, NULL, NULL, argument, &is_new) : NULL;
    if (!finding) return;
    finding->told.argument = findings_text(check->findings, "%s", argument->name);
    finding->told.index = (int64_t)first_element;
    finding->told.has_index = true;
    finding->told.message = findings_text(
        check->findings, "%llu of the %llu elements of output '%s' were never written; the first is %s[%llu]",
        (unsigned long long)unwritten, (unsigned long long)(argument->bytes / argument->element),
        argument->name, argument->name, (unsigned long long)first_element);
}

void undefined_end(struct check *check) {
    for (int i = 0; i < check->launch.argument_count; i++)
        if (check->arguments[i].undefined) look_at(check, &check->arguments[i]);
}
