#include "device/effort.h"
#include "base/setting.h"

/* Launches with a shorter time-out, in seconds, wait for the best code: quick code runs up to fifty times as
 * long. */
#define LEAST_TIMEOUT 30

enum tiers { TIERS_ON, TIERS_OFF, TIERS_QUICK };

static enum tiers tiers(void) {
    static struct setting setting = {"SMELT_TIERS", {"1", "0", "quick"}, ATOMIC_FLAG_INIT};
    return (enum tiers)setting_choice(&setting);
}

bool launch_stays_quick(void) {
    return tiers() == TIERS_QUICK;
}

enum compile_effort launch_effort(const struct launch *launch) {
    bool short_of_time = launch->timeout > 0 && launch->timeout < LEAST_TIMEOUT;
    if (launch_stays_quick()) return COMPILE_QUICK;
    if (launch->best || tiers() == TIERS_OFF) return COMPILE_BEST;
    return short_of_time ? COMPILE_BEST : COMPILE_QUICK_IF_LARGE;
}
