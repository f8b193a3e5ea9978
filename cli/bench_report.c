#include "bench_report.h"
#include "json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static double ratio_of(const struct bench_result *r) {
    return r->anchor_seconds > 0 ? r->median / r->anchor_seconds : (double)NAN;
}

static bool bar_met(const struct bench_result *r) {
    double ratio = ratio_of(r);
    return r->bar.kind == BENCH_SPEED_AT_LEAST ? 1 / ratio >= r->bar.value : ratio <= r->bar.value;
}

/* ---- A table. */

static void print_seconds(double seconds) {
    const char *unit = seconds < 1e-6 ? "ns" : seconds < 1e-3 ? "us" : seconds < 1 ? "ms" : "s";
    double scale = seconds < 1e-6 ? 1e9 : seconds < 1e-3 ? 1e6 : seconds < 1 ? 1e3 : 1;
    printf("%9.3f %-2s", seconds * scale, unit);
}

static void print_rate(const struct bench_result *r) {
    char unit[16] = "";
    if (r->work > 0) snprintf(unit, sizeof unit, "G%s/s", r->work_unit);
    if (r->work > 0)
        printf(" %8.1f %-8s", r->work / r->median * 1e-9, unit);
    else
        printf(" %8s %-8s", "", "");
}

/* A bar on speed is read as speed, everything else as time. */
static void print_comparison(const struct bench_result *r) {
    double ratio = ratio_of(r);
    bool speed = r->bar.kind == BENCH_SPEED_AT_LEAST;
    printf("  %5.2f %s of %s", speed ? 1 / ratio : ratio, speed ? "speed" : "time", r->anchor);
    if (r->bar.kind == BENCH_NO_BAR) return;
    printf(", bar %s %.2f: %s", speed ? ">=" : "<=", r->bar.value, bar_met(r) ? "met" : "missed");
}

void print_table_head(void) {
    printf("%-18s %-26s %12s %12s %17s  %s\n", "job", "variant", "median", "spread", "rate",
           "ratio to anchor");
}

void print_table_row(const struct bench_result *r) {
    printf("%-18s %-26s ", r->job, r->variant);
    if (r->note) {
        printf("%s%.*s\n", r->status != SMELT_OK ? "failed: " : "", (int)strcspn(r->note, "\n"), r->note);
        return;
    }
    print_seconds(r->median);
    putchar(' ');
    print_seconds(r->spread);
    print_rate(r);
    if (r->anchor_seconds > 0) print_comparison(r);
    putchar('\n');
}

/* ---- JSON. */

static void print_key(const char *key, bool first) {
    printf("%s\"%s\": ", first ? "" : ", ", key);
}

static void print_text(const char *key, const char *value, bool first) {
    print_key(key, first);
    json_print_string(stdout, value);
}

static void print_number(const char *key, double value) {
    print_key(key, false);
    json_print_number(stdout, value);
}

static void print_object(const struct bench_result *r) {
    bool measured = !r->note, compared = measured && r->anchor_seconds > 0;
    putchar('{');
    print_text("job", r->job, true);
    print_text("variant", r->variant, false);
    print_number("median_s", measured ? r->median : (double)NAN);
    print_number("iqr_s", measured ? r->spread : (double)NAN);
    print_text("anchor", compared ? r->anchor : NULL, false);
    print_number("ratio", compared ? ratio_of(r) : (double)NAN);
    if (measured && r->work > 0) {
        print_number("per_s", r->work / r->median);
        print_text("per_s_unit", r->work_unit, false);
    }
    if (compared && r->bar.kind != BENCH_NO_BAR) {
        print_number(r->bar.kind == BENCH_SPEED_AT_LEAST ? "bar_speed" : "bar_time", r->bar.value);
        print_key("met", false);
        fputs(bar_met(r) ? "true" : "false", stdout);
    }
    if (r->note) print_text(r->status != SMELT_OK ? "error" : "note", r->note, false);
    putchar('}');
}

void print_results_json(const struct bench_result *results, int count) {
    putchar('[');
    for (int i = 0; i < count; i++) {
        fputs(i ? ",\n " : "\n ", stdout);
        print_object(&results[i]);
    }
    puts("\n]");
}
