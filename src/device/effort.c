#include "device/effort.h"

#include <stdlib.h>
#include <string.h>

/* The shortest time-out, in seconds, that quick code is trusted with: it runs up to fifty times as long. */
#define LEAST_TIMEOUT 30

static bool tiers_are(const char *value) {
    const char *setting = getenv("SMELT_TIERS");
    return setting && strcmp(setting, value) == 0;
}

bool launch_stays_quick(void) {
    return tiers_are("quick");
}

enum compile_effort launch_effort(const struct launch *launch) {
    bool short_of_time = launch->timeout > 0 && launch->timeout < LEAST_TIMEOUT;
    if (launch->best || tiers_are("0")) return COMPILE_BEST;
    if (launch_stays_quick()) return COMPILE_QUICK;
    return short_of_time ? COMPILE_BEST : COMPILE_QUICK_IF_LARGE;
}
