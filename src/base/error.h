/* The calling thread's error message, and the log. */
#ifndef SMELT_BASE_ERROR_H
#define SMELT_BASE_ERROR_H

#include "smelt/smelt.h"

/* Records the thread's message; its value is `status`, so that `return fail(…)` reads as one step, and the
 * compiler sees that a failure is not SMELT_OK. */
#define fail(status, ...) (error_record(__VA_ARGS__), (status))

/* Puts `prefix: ` before the thread's message. */
#define fail_within(status, ...) (error_record_within(__VA_ARGS__), (status))

void error_record(const char *format, ...) __attribute__((format(printf, 1, 2)));
void error_record_within(const char *format, ...) __attribute__((format(printf, 1, 2)));

smelt_status fail_out_of_memory(size_t bytes);

void log_line(smelt_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Passes a kernel's line to its receiver. */
void log_kernel_line(const smelt_kernel_line *line);

/* Runs `call`; on failure leaves the function with its status. */
#define TRY(call)                                      \
    do {                                               \
        smelt_status try_status = (call);              \
        if (try_status != SMELT_OK) return try_status; \
    } while (0)

#endif
