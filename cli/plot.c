#include "plot.h"
#include "commands.h"
#include "values.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define WIDTH 900
#define LEFT 260 /* of the bars */
#define RIGHT 760
#define ROW 20
#define ROOF_HEIGHT 380

void plot_add(struct plot *plot, const struct bench_result *r) {
    if (plot->count == PLOT_MOST || r->note || r->work <= 0 || r->median <= 0) return;
    struct plot_row *row = &plot->rows[plot->count++];
    *row = (struct plot_row){.rate = r->work / r->median,
                             .intensity = r->bytes > 0 ? r->work / r->bytes : 0,
                             .peak = r->peak,
                             .bandwidth = r->bandwidth};
    snprintf(row->job, sizeof row->job, "%s", r->job);
    snprintf(row->variant, sizeof row->variant, "%s", r->variant);
    snprintf(row->unit, sizeof row->unit, "%s", r->work_unit);
}

static void put_text(FILE *out, double x, double y, const char *anchor, const char *text) {
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    for (; *text; text++)
        if (*text == '<' || *text == '&')
            fputs(*text == '<' ? "&lt;" : "&amp;", out);
        else
            fputc(*text, out);
    fputs("</text>\n", out);
}

/* ---- Bars, on a logarithmic scale from a tenth of the least rate of the unit to the greatest. */

static void range_of(const struct plot *plot, const char *unit, double *low, double *high) {
    *low = INFINITY, *high = 0;
    for (int i = 0; i < plot->count; i++)
        if (strcmp(plot->rows[i].unit, unit) == 0) {
            *low = fmin(*low, plot->rows[i].rate);
            *high = fmax(*high, plot->rows[i].rate);
        }
    *low /= 10;
}

static double put_bars(FILE *out, const struct plot *plot) {
    double y = 30;
    const char *job = "";
    for (int i = 0; i < plot->count; i++, y += ROW) {
        const struct plot_row *row = &plot->rows[i];
        double low, high;
        char rate[48];
        range_of(plot, row->unit, &low, &high);
        if (strcmp(job, row->job) != 0) {
            y += i ? ROW : 0;
            put_text(out, 20, y + 14, "start", row->job);
            job = row->job;
            y += ROW;
        }
        double width = (RIGHT - LEFT) * log(row->rate / low) / log(high / low);
        fprintf(out, "<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"14\" fill=\"#4472a8\"/>\n", LEFT,
                y + 3, width);
        snprintf(rate, sizeof rate, "%.4g G%s/s", row->rate * 1e-9, row->unit);
        put_text(out, LEFT - 8, y + 14, "end", row->variant);
        put_text(out, LEFT + width + 6, y + 14, "start", rate);
    }
    return y + ROW;
}

/* ---- The roofline: rate over intensity, both logarithmic. */

struct axes {
    double top, low_x, high_x, low_y, high_y;
};

static double place_x(const struct axes *a, double intensity) {
    return LEFT + (RIGHT - LEFT) * log(intensity / a->low_x) / log(a->high_x / a->low_x);
}

static double place_y(const struct axes *a, double rate) {
    return a->top + ROOF_HEIGHT - 60 - (ROOF_HEIGHT - 100) * log(rate / a->low_y) / log(a->high_y / a->low_y);
}

/* `one` has a peak and a bandwidth, which belong to all points of its kind. */
static void put_roof(FILE *out, const struct plot *plot, const struct plot_row *one, double top) {
    double ridge = one->peak / one->bandwidth, least = one->rate;
    struct axes a = {top, ridge / 100, ridge, one->rate, one->peak * 1.5};
    for (int i = 0; i < plot->count; i++)
        if (plot->rows[i].peak == one->peak && plot->rows[i].intensity > 0) {
            least = fmin(least, plot->rows[i].rate);
            a.low_x = fmin(a.low_x, plot->rows[i].intensity / 2);
            a.high_x = fmax(a.high_x, plot->rows[i].intensity);
        }
    a.high_x *= 4;
    a.low_y = fmin(least / 2, a.low_x * one->bandwidth);
    put_text(out, 20, top + 14, "start", "Bounds: memory (slope) and multiply-adds (level), as measured");
    fprintf(out,
            "<path d=\"M %.1f %.1f L %.1f %.1f L %.1f %.1f\" fill=\"none\" stroke=\"#a03030\" "
            "stroke-width=\"2\"/>\n",
            place_x(&a, a.low_x), place_y(&a, a.low_x * one->bandwidth), place_x(&a, ridge),
            place_y(&a, one->peak), place_x(&a, a.high_x), place_y(&a, one->peak));
    for (int i = 0; i < plot->count; i++) {
        const struct plot_row *row = &plot->rows[i];
        if (row->peak != one->peak || row->intensity <= 0) continue;
        double x = place_x(&a, row->intensity), y = place_y(&a, row->rate);
        fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"#4472a8\"/>\n", x, y);
        put_text(out, i % 2 ? x - 8 : x + 8, y + 4, i % 2 ? "end" : "start", row->variant);
    }
    double bottom = top + ROOF_HEIGHT - 40;
    char words[96];
    fprintf(out, "<path d=\"M %d %.1f L %d %.1f\" stroke=\"#888\"/>\n", LEFT, bottom - 10, RIGHT,
            bottom - 10);
    snprintf(words, sizeof words, "%.3g FLOP/B", a.low_x);
    put_text(out, LEFT, bottom + 8, "start", words);
    snprintf(words, sizeof words, "%.3g FLOP/B", a.high_x);
    put_text(out, RIGHT, bottom + 8, "end", words);
    snprintf(words, sizeof words, "%.4g GFLOP/s, %.3g GB/s", one->peak * 1e-9, one->bandwidth * 1e-9);
    put_text(out, RIGHT, place_y(&a, one->peak) - 8, "end", words);
}

static const struct plot_row *bounded_after(const struct plot *plot, double peak) {
    for (int i = 0; i < plot->count; i++)
        if (plot->rows[i].peak > peak && plot->rows[i].bandwidth > 0 && plot->rows[i].intensity > 0)
            return &plot->rows[i];
    return NULL;
}

int plot_write(const struct plot *plot, const char *file) {
    FILE *out = fopen(file, "w");
    if (!out) {
        complain("--plot is '%s': %s", file, strerror(errno));
        return EXIT_ENVIRONMENT;
    }
    int roofs = 0, jobs = 0;
    for (const struct plot_row *row = bounded_after(plot, 0); row && roofs < 4;
         row = bounded_after(plot, row->peak))
        roofs++;
    for (int i = 0; i < plot->count; i++)
        jobs += i == 0 || strcmp(plot->rows[i].job, plot->rows[i - 1].job) != 0;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" "
            "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
            WIDTH, 60 + ROW * (plot->count + 2 * jobs) + ROOF_HEIGHT * roofs);
    double top = put_bars(out, plot), peak = 0;
    for (int i = 0; i < roofs; i++, top += ROOF_HEIGHT) {
        const struct plot_row *row = bounded_after(plot, peak);
        put_roof(out, plot, row, top);
        peak = row->peak;
    }
    fputs("</svg>\n", out);
    bool good = !ferror(out);
    if (fclose(out) != 0 || !good) {
        complain("--plot is '%s': %s", file, strerror(errno));
        return EXIT_ENVIRONMENT;
    }
    return EXIT_OK;
}
