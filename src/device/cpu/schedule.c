#include "device/cpu/schedule.h"
#include "base/error.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

uint64_t schedule_seed(void) {
    const char *setting = getenv("SMELT_CHECK_SEED");
    char *end;
    if (!setting || !*setting) return 0;
    errno = 0;
    uint64_t seed = strtoull(setting, &end, 10);
    if (isdigit((unsigned char)*setting) && !*end && !errno) return seed;
    log_line(SMELT_LOG_WARNING, "SMELT_CHECK_SEED is '%s', expected a whole number; using 0", setting);
    return 0;
}

/* The finaliser of MurmurHash3. */
static uint64_t mixed(uint64_t x) {
    x = (x ^ x >> 33) * UINT64_C(0xff51afd7ed558ccd);
    x = (x ^ x >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ x >> 33;
}

static uint64_t common_divisor(uint64_t a, uint64_t b) {
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

uint64_t schedule_at(uint64_t seed, uint64_t salt, uint64_t index, uint64_t count) {
    if (!seed || count < 2) return index;
    uint64_t number = mixed(seed * UINT64_C(0x9e3779b97f4a7c15) + salt);
    uint64_t step = 1 + number % (count - 1 ? count - 1 : 1), first = mixed(number) % count;
    while (common_divisor(step, count) != 1) step = step % count + 1;
    return (uint64_t)(((unsigned __int128)step * index + first) % count);
}
