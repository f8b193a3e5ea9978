/* Each access of a kernel: its bounds and its alignment, before race.c looks at it. */
#include "check/state.h"

#include <string.h>

static const char *verb_of(enum check_access access) {
    return access == CHECK_READ ? "reads" : access == CHECK_WRITE ? "writes" : "changes";
}

static void describe_outside(struct check *check, struct finding *finding, char *address, uint64_t bytes,
                             enum check_access access) {
    const struct access *now = &check->now;
    smelt_finding *told = &finding->told;
    check_place(check, told);
    const char *verb = verb_of(access);
    if (!now->base) {
        told->message = findings_text(check->findings, "thread (%u, %u, %u) %s %s", told->thread[0],
                                      told->thread[1], told->thread[2], verb,
                                      (uintptr_t)address < 65536 ? "through a null pointer"
                                                                 : "outside every array that it may use");
        return;
    }
    check_name(check, address, told);
    uint64_t count = now->extent / (now->element ? now->element : 1);
    told->message = findings_outside(check->findings, told, verb, bytes > now->element ? bytes : 0, count,
                                     now->shape ? now->shape : "");
}

/* An access that has no memory gets zeros. A value that is read there is undefined since `finding` (NULL: the
 * access is a write), which becomes one when the value is used. */
static char *scratch(struct check *check, uint64_t bytes, struct finding *finding) {
    struct stack *scratch = &check->scratch;
    if (bytes > SCRATCH_BYTES) bytes = SCRATCH_BYTES;
    memset(scratch->start, 0, bytes);
    memset(scratch->shadow, 0, bytes);
    if (finding)
        undefined_mark(scratch->shadow, scratch->origins, 0, bytes,
                       undefined_origin(check, ORIGIN_HELD, finding));
    return scratch->start;
}

static bool fits(const char *start, uint64_t extent, const char *address, uint64_t bytes) {
    uint64_t offset = (uint64_t)((uintptr_t)address - (uintptr_t)start);
    return offset <= extent && bytes <= extent - offset;
}

/* The address that the access uses instead. */
static char *outside(struct check *check, char *address, uint64_t bytes, enum check_access access,
                     const struct check_site *site) {
    bool is_new, reads = access == CHECK_READ;
    struct finding *finding =
        reads ? findings_hold(check->findings, FINDING_OUT_OF_BOUNDS, site, NULL, &is_new)
              : findings_add(check->findings, FINDING_OUT_OF_BOUNDS, site, NULL, NULL, &is_new);
    if (is_new) describe_outside(check, finding, address, bytes, access);
    return scratch(check, bytes, reads ? finding : NULL);
}

static void misaligned(struct check *check, const char *address, enum check_access access, uint32_t alignment,
                       const struct check_site *site) {
    bool is_new;
    struct finding *finding = findings_add(check->findings, FINDING_MISALIGNED, site, NULL, NULL, &is_new);
    if (!finding || !is_new) return;
    smelt_finding *told = &finding->told;
    check_place(check, told);
    check_name(check, address, told);
    told->message = findings_misaligned(check->findings, told, verb_of(access), UINT64_C(1) << alignment);
}

static struct access of_argument(const struct check_argument *argument) {
    return (struct access){argument->start, argument->bytes,   argument->base,
                           argument->name,  argument->element, argument->shape};
}

/* A [[threadgroup(i)]] argument, by its address. */
static struct access of_slot(struct check *check, const char *base, uint32_t bytes) {
    for (int i = 0; i < check->group.slot_count; i++)
        if (check->group.slots[i] == base && check->group.slot_bytes[i]) {
            check->slot = base;
            check->slot_bytes = check->group.slot_bytes[i];
            const char *name = check->launch.slot_names[i];
            return (struct access){base,  check->group.slot_bytes[i],
                                   NULL,  name && *name ? name : "threadgroup memory",
                                   bytes, NULL};
        }
    return (struct access){base, 0, NULL, "threadgroup memory", bytes, NULL};
}

/* Of a pointer that says nothing of its object: what lies there. */
static struct access of_address(struct check *check, char *address, uint64_t bytes) {
    const struct check_argument *argument = memories_argument(check, address);
    const struct stack *stack = check->stack;
    const struct region *group = &check->threadgroup;
    if (argument) advice_use(check, argument);
    if (argument) return of_argument(argument);
    if (fits(group->start, (uint64_t)(group->end - group->start), address, bytes))
        return (struct access){
            group->start, (uint64_t)(group->end - group->start), NULL, "threadgroup memory", 1, NULL};
    if (fits(stack->start, (uint64_t)(stack->end - stack->start), address, bytes))
        return (struct access){stack->start, (uint64_t)(stack->end - stack->start), NULL, "private memory", 1,
                               NULL};
    if (fits(check->launch.constants, check->launch.constant_bytes, address, bytes))
        return (struct access){
            check->launch.constants, check->launch.constant_bytes, NULL, "a constant", 1, NULL};
    return (struct access){0};
}

static struct access meant(struct check *check, char *address, const char *base, uint64_t extent,
                           uint64_t bytes, uint32_t flags, const struct check_site *site) {
    uint32_t number = CHECK_NUMBER(flags);
    if (extent)
        return (struct access){base, extent, NULL, site->name, number ? number : (uint32_t)bytes, NULL};
    if (CHECK_SPACE(flags) == CHECK_THREADGROUP) return of_slot(check, base, (uint32_t)bytes);
    if (CHECK_SPACE(flags) != CHECK_DEVICE) return of_address(check, address, bytes);
    const struct check_argument *argument = memories_indexed(check, (int32_t)number);
    if (argument) advice_use(check, argument);
    return argument ? of_argument(argument) : (struct access){0};
}

/* The fast path: whether an access is inside its object, aligned, and races with nothing. If so, it is noted.
 * If not, access_any must judge it. */
static bool is_usual(struct check *check, char *address, const char *base, uint64_t extent, uint64_t bytes,
                     uint32_t flags, const struct check_site *site) {
    enum check_space space = CHECK_SPACE(flags);
    enum memory_kind kind = THREADGROUP_MEMORY;
    struct region *region = &check->threadgroup;
    if (check->advice || ((uintptr_t)address & (((uintptr_t)1 << CHECK_ALIGNMENT(flags)) - 1))) return false;
    if (space == CHECK_PRIVATE || space == CHECK_CONSTANT) return base && fits(base, extent, address, bytes);
    if (check->doubt.address || !bytes) return false;
    if (site->number >= check->site_room || check->sites[site->number] != site) return false;
    if (space == CHECK_DEVICE) {
        uint32_t number = CHECK_NUMBER(flags);
        const struct bound *bound = &check->bound[number < MOST_BOUND ? number : 0];
        if (number >= MOST_BOUND || !bound->region) return false;
        base = bound->argument->start;
        extent = bound->argument->bytes;
        region = bound->region;
        kind = DEVICE_MEMORY;
    } else if (space == CHECK_ANYWHERE) {
        return false;
    } else if (space == CHECK_THREADGROUP && !extent) {
        if (check->slot != base) return false;
        extent = check->slot_bytes;
    }
    if (!base || !fits(base, extent, address, bytes)) return false;
    check->last = region;
    return race_usual(check, region, kind, address, bytes, CHECK_ACCESS(flags), site);
}

static char *access_any(struct check *check, char *address, const char *base, uint64_t extent, uint64_t bytes,
                        uint32_t flags, const struct check_site *site) {
    enum check_space space = CHECK_SPACE(flags);
    enum check_access access = CHECK_ACCESS(flags);
    race_settle(check);
    if (!bytes) return address;
    check_meet(check, site);
    check->now = meant(check, address, base, extent, bytes, flags, site);
    if (!check->now.base || !fits(check->now.base, check->now.extent, address, bytes))
        return outside(check, address, bytes, access, site);
    if ((uintptr_t)address & (((uintptr_t)1 << CHECK_ALIGNMENT(flags)) - 1))
        misaligned(check, address, access, CHECK_ALIGNMENT(flags), site);
    if (check->advice) advice_access(check, address, bytes, access, space, site);
    if (space == CHECK_PRIVATE || space == CHECK_CONSTANT) return address;
    struct region *region = memories_region(check, address);
    if (region)
        race_access(check, region, region == &check->threadgroup ? THREADGROUP_MEMORY : DEVICE_MEMORY,
                    address, bytes, access, site);
    return address;
}

/* A value of threadgroup memory that was never set gets the name of its array when it is read. */
static void name_undefined(struct check *check, const char *address, const char *base, uint64_t extent,
                           const struct check_site *site) {
    const struct region *region = &check->threadgroup;
    if (address < region->start || address >= region->end) return;
    size_t offset = (size_t)(address - region->start);
    uint32_t *origin = &region->origins[offset / 4];
    if (!region->shadow[offset] || !*origin) return;
    const struct origin *known = &check->origins[*origin];
    if (known->kind != ORIGIN_THREADGROUP || known->what) return;
    const char *name = extent ? site->name : of_slot(check, base, 1).name;
    *origin = undefined_origin(check, ORIGIN_THREADGROUP, name);
}

char *smelt_check_access(char *address, const char *base, uint64_t extent, uint64_t bytes, uint32_t flags,
                         const struct check_site *site) {
    struct check *check = check_this;
    if (!is_usual(check, address, base, extent, bytes, flags, site))
        address = access_any(check, address, base, extent, bytes, flags, site);
    if (CHECK_SPACE(flags) == CHECK_THREADGROUP && CHECK_ACCESS(flags) == CHECK_READ)
        name_undefined(check, address, base, extent, site);
    return address;
}

char *smelt_check_object(char *address) {
    return address;
}

/* ---- Accesses of the runtime. */

/* The bits from the first element to the end of the last, before and behind its start. */
static void span(const struct check_lines *l, int64_t *low, int64_t *high) {
    int64_t line = (int64_t)(l->lines - 1) * l->line_bits,
            element = (int64_t)(l->elements - 1) * l->element_bits;
    *low = (line < 0 ? line : 0) + (element < 0 ? element : 0);
    *high = (line > 0 ? line : 0) + (element > 0 ? element : 0) + l->width;
}

/* One site for each line, so that a product that misses again and again is one finding. */
const struct check_site *check_line_site(struct check *check, const char *file, int line) {
    struct line_site *known = check->lines;
    while (known && (known->site.line != (uint32_t)line || strcmp(known->site.file, file) != 0))
        known = known->next;
    if (known) return &known->site;
    known = arena_alloc(&check->findings->arena, sizeof *known);
    if (!known) return NULL;
    *known = (struct line_site){.next = check->lines, .site = {.file = file, .line = (uint32_t)line}};
    check->lines = known;
    return &known->site;
}

bool check_touch(struct check *check, const struct check_lines *l, const char *file, int line) {
    int64_t low, high;
    bool is_new;
    race_settle(check);
    if (!l->lines || !l->elements) return true;
    span(l, &low, &high);
    check->now = of_address(check, l->start, 1);
    char *first = l->start + low / 8, *last = l->start + (high + 7) / 8 - 1;
    struct access *now = &check->now;
    bool inside =
        now->base && fits(now->base, now->extent, first, 1) && fits(now->base, now->extent, last, 1);
    if (inside) return true;
    const struct check_site *site = check_line_site(check, file, line);
    if (!site) return false;
    struct finding *finding = findings_add(check->findings, FINDING_OUT_OF_BOUNDS, site, NULL, NULL, &is_new);
    if (is_new)
        describe_outside(check, finding, now->base && !fits(now->base, now->extent, first, 1) ? first : last,
                         1, l->written ? CHECK_WRITE : CHECK_READ);
    return false;
}

/* ---- Barriers. */

/* The column of the barrier at which the thread stands; 0: not known. */
static uint32_t column_of(const struct check *check, const struct check_standing *standing) {
    const struct check_site *site = check->threads[standing->thread].barrier;
    return site && site->line == standing->line ? site->column : 0;
}

void check_barrier_missed(struct check *check, const struct check_standing *waiting,
                          const struct check_standing *other) {
    bool is_new;
    struct check_site *site = arena_alloc(&check->findings->arena, sizeof *site);
    if (!site) return;
    *site = (struct check_site){
        .file = waiting->file, .line = waiting->line, .column = column_of(check, waiting)};
    struct finding *finding = findings_add(check->findings, FINDING_BARRIER, site, NULL, NULL, &is_new);
    if (!is_new) return;
    smelt_finding *told = &finding->told;
    check->thread = waiting->thread;
    check_place(check, told);
    check_position(check, other->thread, told->other_thread);
    memcpy(told->other_threadgroup, told->threadgroup, sizeof told->threadgroup);
    told->other_file = other->file ? findings_text(check->findings, "%s", other->file) : "";
    told->other_line = other->file ? (int)other->line : 0;
    told->other_column = other->file ? (int)column_of(check, other) : 0;
    const char *where = other->file
                            ? findings_text(check->findings, "waits at the one of line %u", other->line)
                            : "reached the end of the kernel";
    told->message =
        findings_text(check->findings,
                      "thread (%u, %u, %u) waits at this barrier, but thread (%u, %u, %u) %s; all threads of "
                      "a threadgroup must meet at a barrier or leave by return",
                      told->thread[0], told->thread[1], told->thread[2], told->other_thread[0],
                      told->other_thread[1], told->other_thread[2], where);
}
