#include "check/finding.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *code, *kind; /* CHECK_CODES has each code, too */
} kinds[FINDING_KINDS] = {
    [FINDING_OUT_OF_BOUNDS] = {"SM001", "out-of-bounds"},
    [FINDING_RACE] = {"SM002", "race"},
    [FINDING_SIMDGROUP_RACE] = {"SM003", "race"},
    [FINDING_GROUP_RACE] = {"SM004", "race"},
    [FINDING_UNINITIALISED] = {"SM005", "uninitialised"},
    [FINDING_UNWRITTEN] = {"SM006", "unwritten"},
    [FINDING_BARRIER] = {"SM007", "barrier"},
    [FINDING_OVERFLOW] = {"SM008", "overflow"},
    [FINDING_SHIFT] = {"SM009", "overflow"},
    [FINDING_DIVISION] = {"SM010", "overflow"},
    [FINDING_CONVERSION] = {"SM011", "overflow"},
    [FINDING_MISALIGNED] = {"SM012", "misaligned"}, /* SM013: cli/schedules.c */
    [FINDING_INACTIVE_LANE] = {"SM014", "divergent-simdgroup"},
    [FINDING_MISSED_BY_LANES] = {"SM015", "divergent-simdgroup"},
    [FINDING_NOT_FINITE] = {"SM016", "not-finite"},
    [FINDING_WRAP] = {"SM017", "overflow"},
    [FINDING_ASSERTION] = {"SM018", "assertion"},
    [FINDING_COVERAGE] = {"SM020", "coverage"},
    [FINDING_UNUSED] = {"SM021", "advice"},
    [FINDING_BANKS] = {"SM022", "advice"},
    [FINDING_UNCOALESCED] = {"SM023", "advice"},
    [FINDING_DYNAMIC_INDEX] = {"SM024", "advice"},
    [FINDING_ATOMIC_SUM] = {"SM025", "advice"}, /* SM026: frontend/warning.c, cli/warnings.c */
    [FINDING_NEVER_TRUE] = {"SM027", "advice"},
};

static const char *or_empty(const char *text) {
    return text ? text : "";
}

static unsigned bucket_of(enum finding_kind kind, const struct check_site *site,
                          const struct check_site *other) {
    return (unsigned)(kind * 67u + (site ? site->number * 31u : 0) + (other ? other->number * 17u : 0)) & 255;
}

static void place(struct findings *findings, const struct check_site *site, const char **file, int *line,
                  int *column) {
    *file = site && site->file ? findings_text(findings, "%s", site->file) : "";
    *line = site ? (int)site->line : 0;
    *column = site ? (int)site->column : 0;
}

/* The finding, or a new one that is not listed. */
static struct finding *find(struct findings *findings, enum finding_kind kind, const struct check_site *site,
                            const struct check_site *other, const void *object, bool *is_new) {
    struct finding **bucket = &findings->buckets[bucket_of(kind, site, other)];
    *is_new = false;
    for (struct finding *f = *bucket; f; f = f->next)
        if (f->kind == kind && f->site == site && f->other == other && f->object == object) return f;
    struct finding *added =
        findings->count < MOST_FINDINGS ? arena_alloc(&findings->arena, sizeof *added) : NULL;
    if (!added) return NULL;
    *added = (struct finding){.next = *bucket, .kind = kind, .site = site, .other = other, .object = object};
    added->told = (smelt_finding){
        .code = kinds[kind].code, .kind = kinds[kind].kind, .message = "", .argument = "", .index = -1};
    place(findings, site, &added->told.file, &added->told.line, &added->told.column);
    place(findings, other, &added->told.other_file, &added->told.other_line, &added->told.other_column);
    *bucket = added;
    *is_new = true;
    return added;
}

void findings_tell(struct findings *findings, struct finding *finding) {
    finding->told.count++;
    if (finding->listed || findings->count == MOST_FINDINGS) return;
    finding->listed = true;
    findings->list[findings->count++] = finding;
}

struct finding *findings_add(struct findings *findings, enum finding_kind kind, const struct check_site *site,
                             const struct check_site *other, const void *object, bool *is_new) {
    struct finding *finding = find(findings, kind, site, other, object, is_new);
    if (finding) findings_tell(findings, finding);
    return finding;
}

struct finding *findings_hold(struct findings *findings, enum finding_kind kind,
                              const struct check_site *site, const void *object, bool *is_new) {
    return find(findings, kind, site, NULL, object, is_new);
}

bool finding_is_advice(const smelt_finding *finding) {
    return strcmp(finding->kind, "advice") == 0 || strcmp(finding->kind, "coverage") == 0;
}

void findings_filter(struct findings *findings, bool (*keep)(const void *context, smelt_finding *finding),
                     const void *context) {
    int kept = 0;
    for (int i = 0; i < findings->count; i++)
        if (keep(context, &findings->list[i]->told)) findings->list[kept++] = findings->list[i];
    findings->count = kept;
}

const char *findings_text(struct findings *findings, const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return or_empty(arena_copy(&findings->arena, text, strlen(text)));
}

const char *findings_outside(struct findings *findings, const smelt_finding *told, const char *verb,
                             uint64_t bytes, uint64_t count, const char *shape) {
    const char *amount = bytes ? findings_text(findings, "%llu bytes from ", (unsigned long long)bytes) : "";
    return findings_text(
        findings,
        "thread (%u, %u, %u) of threadgroup (%u, %u, %u) %s %s%s[%lld]%s, but '%s' has %llu "
        "element%s%s%s",
        told->thread[0], told->thread[1], told->thread[2], told->threadgroup[0], told->threadgroup[1],
        told->threadgroup[2], verb, amount, told->argument, (long long)told->index, *amount ? " on" : "",
        told->argument, (unsigned long long)count, count == 1 ? "" : "s", *shape ? " and shape " : "", shape);
}

const char *findings_misaligned(struct findings *findings, const smelt_finding *told, const char *verb,
                                uint64_t bytes) {
    return findings_text(
        findings,
        "thread (%u, %u, %u) of threadgroup (%u, %u, %u) %s '%s' at an address that is not a "
        "multiple of %llu bytes",
        told->thread[0], told->thread[1], told->thread[2], told->threadgroup[0], told->threadgroup[1],
        told->threadgroup[2], verb, told->argument, (unsigned long long)bytes);
}

smelt_status findings_end(struct findings *findings, const char *kernel,
                          bool (*accept)(const void *context, smelt_finding *finding), const void *context) {
    if (accept) findings_filter(findings, accept, context);
    int count = 0;
    const smelt_finding *first = NULL;
    for (int i = 0; i < findings->count; i++) {
        const smelt_finding *told = &findings->list[i]->told;
        if (finding_is_advice(told)) continue;
        if (!count++) first = told;
    }
    findings_publish(findings);
    if (!first) return SMELT_OK;
    char where[600] = "";
    if (first->line) snprintf(where, sizeof where, "%s:%d: ", first->file, first->line);
    return fail(SMELT_ERROR_CHECK, "kernel '%s': %s%s (%s)%s", kernel, where, first->message, first->code,
                count > 1 ? "; there are more findings" : "");
}

void findings_free(struct findings *findings) {
    if (findings) arena_free(&findings->arena);
    free(findings);
}

/* ---- Those of a thread of the host, freed with it. */

static pthread_key_t published_key;
static pthread_once_t published_once = PTHREAD_ONCE_INIT;

static void destroy(void *findings) {
    findings_free(findings);
}

static void make_key(void) {
    (void)pthread_key_create(&published_key, destroy);
}

static struct findings *published(void) {
    pthread_once(&published_once, make_key);
    return pthread_getspecific(published_key);
}

void findings_publish(struct findings *findings) {
    findings_free(published());
    if (pthread_setspecific(published_key, findings) != 0) findings_free(findings);
}

int smelt_findings_count(void) {
    const struct findings *findings = published();
    return findings ? findings->count : 0;
}

bool smelt_findings_get(int index, smelt_finding *finding) {
    if (!finding || index < 0 || index >= smelt_findings_count()) return false;
    *finding = published()->list[index]->told;
    return true;
}
