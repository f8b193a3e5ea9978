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
static void print_anchor(const struct bench_result *r) {
    double ratio = ratio_of(r);
    bool speed = r->bar.kind == BENCH_SPEED_AT_LEAST;
    printf("  %5.2f %s of %s", speed ? 1 / ratio : ratio, speed ? "speed" : "time", r->anchor);
    if (r->bar.kind == BENCH_NO_BAR) return;
    printf(", bar %s %.2f: %s", speed ? ">=" : "<=", r->bar.value, bar_met(r) ? "met" : "missed");
}

static void print_table_row(const struct bench_result *r) {
    printf("%-18s %-26s ", r->job, r->variant);
    if (r->note) {
        printf("%s%.*s\n", r->status != SMELT_OK ? "failed: " : "", (int)strcspn(r->note, "\n"), r->note);
        return;
    }
    print_seconds(r->median);
    putchar(' ');
    print_seconds(r->spread);
    print_rate(r);
    if (r->anchor_seconds > 0) print_anchor(r);
    putchar('\n');
}

/* ---- A table of products, as of a ladder. */

/* Jobs of the benchmark matmul. */
#define PRODUCTS "product-"
#define PRODUCT_RULE                                                                                         \
    "------------------------------------------------------------------------------------------------------" \
    "--------"

/* A heading for each job. */
static void print_product_row(struct printer *printer, const struct bench_result *r) {
    if (strcmp(printer->job, r->job) != 0) {
        if (*printer->job) puts(PRODUCT_RULE "\n");
        snprintf(printer->job, sizeof printer->job, "%s", r->job);
        printf("%s\n" PRODUCT_RULE "\n| %-28s | %12s | %5s | %10s | %10s | %10s | %7s |\n" PRODUCT_RULE "\n",
               r->job, "name", "met (ms)", "iters", "GFLOPS/s", "GElems/s", "of library", "of peak");
    }
    if (r->note) {
        printf("| %-28s | %s%.*s\n", r->variant, r->status != SMELT_OK ? "failed: " : "",
               (int)strcspn(r->note, "\n"), r->note);
        return;
    }
    printf("| %-28s | %12.6f | %5d |", r->variant, r->median * 1e3, r->rounds);
    if (strcmp(r->work_unit, "FLOP") != 0) { /* of memory */
        printf(" %.3f G%s/s\n", r->work / r->median * 1e-9, r->work_unit);
        return;
    }
    printf(" %10.3f |", r->work / r->median * 1e-9);
    if (r->elements > 0)
        printf(" %10.6f |", r->elements / r->median * 1e-9);
    else
        printf(" %10s |", "");
    if (r->anchor_seconds > 0)
        printf(" %10.3f |", r->anchor_seconds / r->median);
    else
        printf(" %10s |", "");
    if (r->peak > 0)
        printf(" %7.3f |\n", r->work / r->median / r->peak);
    else
        printf(" %7s |\n", "");
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
    if (measured && r->elements > 0) print_number("elements", r->elements);
    if (measured && r->peak > 0) print_number("of_peak", r->work / r->median / r->peak);
    if (compared && r->bar.kind != BENCH_NO_BAR) {
        print_number(r->bar.kind == BENCH_SPEED_AT_LEAST ? "bar_speed" : "bar_time", r->bar.value);
        print_key("met", false);
        fputs(bar_met(r) ? "true" : "false", stdout);
    }
    if (r->note) print_text(r->status != SMELT_OK ? "error" : "note", r->note, false);
    putchar('}');
}

/* ---- Comma-separated values. */

static void print_cell(const char *text) {
    if (text && !strpbrk(text, ",\"\n")) {
        fputs(text, stdout);
        return;
    }
    putchar('"');
    for (; text && *text; text++) printf(*text == '"' ? "\"\"" : "%c", *text);
    putchar('"');
}

/* A number, or nothing if there is none. */
static void print_cell_number(double value) {
    putchar(',');
    if (isfinite(value)) printf("%.9g", value);
}

static void print_csv_row(const struct bench_result *r) {
    bool compared = !r->note && r->anchor_seconds > 0;
    print_cell(r->job);
    putchar(',');
    print_cell(r->variant);
    print_cell_number(r->note ? (double)NAN : r->median);
    print_cell_number(r->note ? (double)NAN : r->spread);
    putchar(',');
    print_cell(compared ? r->anchor : "");
    print_cell_number(compared ? ratio_of(r) : (double)NAN);
    putchar(',');
    print_cell(r->note ? r->note : "");
    putchar('\n');
}

/* ---- Rows of each form. */

static void print_start(struct printer *printer, const char *table, const char *csv) {
    bool first = printer->count++ == 0;
    if (printer->format == PRINT_JSON)
        fputs(first ? "[\n " : ",\n ", stdout);
    else if (first)
        puts(printer->format == PRINT_CSV ? csv : table);
}

void print_result(struct printer *printer, const struct bench_result *result) {
    if (printer->format == PRINT_TABLE && strncmp(result->job, PRODUCTS, strlen(PRODUCTS)) == 0) {
        print_product_row(printer, result);
        (void)fflush(stdout);
        return;
    }
    print_start(printer,
                "job                variant                          median       spread              rate  "
                "ratio to anchor",
                "job,variant,median_s,iqr_s,anchor,ratio,note");
    (printer->format == PRINT_JSON  ? print_object
     : printer->format == PRINT_CSV ? print_csv_row
                                    : print_table_row)(result);
    (void)fflush(stdout);
}

static void print_comparison_text(const struct against_row *row, double ratio) {
    printf("%-18s %-26s", row->job, row->variant);
    for (int b = 0; b < AGAINST_BUILDS; b++) {
        putchar(' ');
        if (isfinite(row->median[b]))
            print_seconds(row->median[b]);
        else
            printf("%12s", "-");
    }
    if (isfinite(ratio)) printf("  %6.3f", ratio);
    putchar('\n');
}

static void print_comparison_json(const struct against_row *row, double ratio) {
    putchar('{');
    print_text("job", row->job, true);
    print_text("variant", row->variant, false);
    print_number("median_s", row->median[AGAINST_THIS]);
    print_number("iqr_s", row->spread[AGAINST_THIS]);
    print_number("other_median_s", row->median[AGAINST_OTHER]);
    print_number("other_iqr_s", row->spread[AGAINST_OTHER]);
    print_number("ratio", ratio);
    putchar('}');
}

static void print_comparison_csv(const struct against_row *row, double ratio) {
    print_cell(row->job);
    putchar(',');
    print_cell(row->variant);
    for (int b = 0; b < AGAINST_BUILDS; b++) {
        print_cell_number(row->median[b]);
        print_cell_number(row->spread[b]);
    }
    print_cell_number(ratio);
    putchar('\n');
}

void print_comparison(struct printer *printer, const struct against_row *row) {
    char head[120];
    snprintf(head, sizeof head, "%-18s %-26s %12s %12s   %s", "job", "variant", "this build", "other build",
             "ratio");
    print_start(printer, head, "job,variant,median_s,iqr_s,other_median_s,other_iqr_s,ratio");
    (printer->format == PRINT_JSON ? print_comparison_json
     : printer->format == PRINT_CSV
         ? print_comparison_csv
         : print_comparison_text)(row, row->median[AGAINST_THIS] / row->median[AGAINST_OTHER]);
    (void)fflush(stdout);
}

void print_end(const struct printer *printer) {
    if (printer->format == PRINT_TABLE && *printer->job) puts(PRODUCT_RULE);
    if (printer->format == PRINT_JSON) puts(printer->count ? "\n]" : "[\n]");
}
