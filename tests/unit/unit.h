/* What every unit test includes first: cmocka with what it needs, without its macro `fail`, which is ours too. */
#ifndef SMELT_TESTS_UNIT_H
#define SMELT_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#endif
