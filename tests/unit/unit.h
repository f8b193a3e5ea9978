/* Included first by every unit test: cmocka with its requirements, without its macro `fail`, which is also
 * one of ours. */
#ifndef SMELT_TESTS_UNIT_H
#define SMELT_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

/* Ends the test with a message. */
#define FAIL_TEST(...)             \
    do {                           \
        print_error(__VA_ARGS__);  \
        print_error("\n");         \
        _fail(__FILE__, __LINE__); \
    } while (0)

/* Leaves the test out and says why. */
#define SKIP_TEST(...)              \
    do {                            \
        print_message("skipped: "); \
        print_message(__VA_ARGS__); \
        print_message("\n");        \
        skip();                     \
    } while (0)

/* A call of smelt.h that must succeed. */
#define OK(call)                                                                                     \
    do {                                                                                             \
        smelt_status ok_status = (call);                                                             \
        if (ok_status != SMELT_OK) FAIL_TEST("%s: %s", smelt_status_name(ok_status), smelt_error()); \
    } while (0)

#endif
