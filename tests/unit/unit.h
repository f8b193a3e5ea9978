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

#endif
