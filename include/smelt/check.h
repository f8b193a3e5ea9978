/* Checked runs: a kernel's bugs, named.
 *
 * A run or dispatch with `check` set runs the kernel one thread at a time on the CPU, with every access of
 * memory checked. On a GPU, it ends the launch at the first access that is out of bounds or misaligned. It
 * returns SMELT_ERROR_CHECK if anything was found; the functions below then tell what. */
#ifndef SMELT_CHECK_H
#define SMELT_CHECK_H

#include <smelt/smelt.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One finding. Its strings live until the calling thread's next checked run. */
typedef struct smelt_finding {
    const char *code;     /* "SM001" …: docs/checking.md lists them */
    const char *kind;     /* likewise, "race"; "advice" and "coverage" are not errors */
    const char *message;  /* a sentence */
    const char *file;     /* of the user's source; "": not known */
    int line, column;     /* from 1; 0: not known */
    const char *argument; /* the argument or variable that it is about; "": none */
    int64_t index;        /* of the element there, if `has_index`; below 0 in front of the first */
    uint32_t thread[3], threadgroup[3]; /* positions of the thread, and of its threadgroup in the grid */
    const char *other_file;             /* the other place: of a race, the earlier access; "": none */
    int other_line, other_column;
    uint32_t other_thread[3], other_threadgroup[3];
    uint64_t count; /* how often it happened, at this place */
    bool has_index; /* `index` is known */
    uint64_t reserved[3];
} smelt_finding;

/* The number of findings of the calling thread's last checked run that began; 0 before the first. At most
 * 1,000 findings of different places are kept. */
SMELT_API int smelt_findings_count(void);

/* Fills *finding with number `index`, from 0. False past the last. */
SMELT_API bool smelt_findings_get(int index, smelt_finding *finding);

#ifdef __cplusplus
}
#endif

#endif
