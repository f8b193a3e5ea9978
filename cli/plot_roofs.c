/* Rooflines: the rates of a job over its operations per byte, under the bounds that memory and arithmetic
 * set. */
#include "plot.h"
#include "svg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEFT 90
#define RIGHT 610
#define NAMES 650  /* where the points' names begin */
#define LEADING 15 /* from name to name */
#define HEIGHT 300
#define MOST_TICKS 24
#define GIGA 1e-9

struct roof {
    const struct plot *plot;
    const struct plot_row *one; /* a point of the job: its peak and bandwidth are those of all */
    double peak, bandwidth;     /* in GFLOP/s and GB/s */
    struct svg_scale x, y;
};

static bool is_point(const struct roof *roof, const struct plot_row *row) {
    return row->intensity > 0 && row->bandwidth > 0 && row->peak > 0 && strcmp(row->job, roof->one->job) == 0;
}

/* ---- Axes. */

static void put_axes(FILE *out, const struct roof *roof) {
    double ticks[MOST_TICKS], bottom = roof->y.from, top = roof->y.to;
    char words[64];
    int count = svg_ticks(&roof->x, ticks, MOST_TICKS);
    for (int i = 0; i < count; i++) {
        double x = svg_place(&roof->x, ticks[i]);
        svg_line(out, x, top, x, bottom, SVG_GRID);
        snprintf(words, sizeof words, "%g", ticks[i]);
        svg_text(out, x, bottom + 16, "middle", "fill=\"" SVG_GREY "\"", words);
    }
    count = svg_ticks(&roof->y, ticks, MOST_TICKS);
    for (int i = 0; i < count; i++) {
        double y = svg_place(&roof->y, ticks[i]);
        svg_line(out, LEFT, y, RIGHT, y, SVG_GRID);
        snprintf(words, sizeof words, "%g", ticks[i]);
        svg_text(out, LEFT - 6, y + 4, "end", "fill=\"" SVG_GREY "\"", words);
    }
    svg_line(out, LEFT, bottom, RIGHT, bottom, SVG_GREY);
    svg_line(out, LEFT, bottom, LEFT, top, SVG_GREY);
    snprintf(words, sizeof words, "%s per byte of memory, logarithmic scale", roof->one->unit);
    svg_text(out, (LEFT + RIGHT) / 2.0, bottom + 38, "middle", "", words);
    char turned[64];
    double middle = (top + bottom) / 2;
    snprintf(turned, sizeof turned, "transform=\"rotate(-90 24 %.1f)\"", middle);
    snprintf(words, sizeof words, "G%s/s, logarithmic scale", roof->one->unit);
    svg_text(out, 24, middle, "middle", turned, words);
}

/* ---- The bounds, each with its figure. */

static void put_bounds(FILE *out, const struct roof *roof) {
    double ridge = roof->peak / roof->bandwidth, first = fmax(roof->x.low, roof->y.low / roof->bandwidth);
    double x0 = svg_place(&roof->x, first), y0 = svg_place(&roof->y, first * roof->bandwidth);
    double x1 = svg_place(&roof->x, ridge), y1 = svg_place(&roof->y, roof->peak);
    fprintf(out,
            "<path d=\"M %.1f %.1f L %.1f %.1f L %d %.1f\" fill=\"none\" stroke=\"%s\" "
            "stroke-width=\"2\"/>\n",
            x0, y0, x1, y1, RIGHT, y1, plot_color(PLOT_BOUND));
    char words[64], style[160];
    double x = (x0 + x1) / 2, y = (y0 + y1) / 2;
    snprintf(style, sizeof style, "fill=\"%s\" transform=\"rotate(%.1f %.1f %.1f) translate(0 -7)\"",
             plot_color(PLOT_BOUND), atan2(y1 - y0, x1 - x0) * 180 / acos(-1), x, y);
    snprintf(words, sizeof words, "memory: %.3g GB/s", roof->bandwidth);
    svg_text(out, x, y, "middle", style, words);
    /* Left of the level there are no points; where its name does not fit there, it stands above. */
    snprintf(style, sizeof style, "fill=\"%s\"", plot_color(PLOT_BOUND));
    snprintf(words, sizeof words, "arithmetic: %.4g G%s/s", roof->peak, roof->one->unit);
    bool fits = x1 - LEFT > SVG_LETTER * (double)strlen(words) + 12;
    svg_text(out, fits ? x1 - 8 : x1, fits ? y1 + 4 : y1 - 7, fits ? "end" : "start", style, words);
}

/* ---- The points. Their names stand to the right of the diagram, one below the other, since points of one
 * job lie above each other. */

static int compare_rates(const void *a, const void *b) {
    double one = (*(const struct plot_row *const *)a)->rate,
           other = (*(const struct plot_row *const *)b)->rate;
    return (one < other) - (one > other);
}

static void put_points(FILE *out, const struct roof *roof, double bottom) {
    const struct plot_row *points[PLOT_MOST];
    double lines[PLOT_MOST];
    int count = 0;
    for (int i = 0; i < roof->plot->count; i++)
        if (is_point(roof, &roof->plot->rows[i])) points[count++] = &roof->plot->rows[i];
    qsort(points, (size_t)count, sizeof *points, compare_rates);
    /* Each name next to its point or below the name before; then up again from the bottom. */
    for (int i = 0; i < count; i++) {
        lines[i] = svg_place(&roof->y, points[i]->rate * GIGA);
        if (i > 0) lines[i] = fmax(lines[i], lines[i - 1] + LEADING);
    }
    for (int i = count - 1; i >= 0; i--)
        lines[i] = fmin(lines[i], i == count - 1 ? bottom : lines[i + 1] - LEADING);
    for (int i = 0; i < count; i++) {
        double x = svg_place(&roof->x, points[i]->intensity), y = svg_place(&roof->y, points[i]->rate * GIGA);
        char words[128];
        fprintf(out, "<path d=\"M %.1f %.1f L %d %.1f L %d %.1f\" fill=\"none\" stroke=\"#bbbbbb\"/>\n", x, y,
                RIGHT + 4, y, NAMES - 4, lines[i]);
        fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\"/>\n", x, y,
                plot_color(points[i]->role));
        snprintf(words, sizeof words, "%s: %.4g", points[i]->variant, points[i]->rate * GIGA);
        svg_text(out, NAMES, lines[i] + 4, "start", "", words);
    }
}

static double put_roof(FILE *out, const struct plot *plot, const struct plot_row *one, double top) {
    struct roof roof = {
        .plot = plot, .one = one, .peak = one->peak * GIGA, .bandwidth = one->bandwidth * GIGA};
    double least = one->rate, fewest = INFINITY, most = 0, greatest = one->peak;
    int count = 0;
    for (int i = 0; i < plot->count; i++) {
        const struct plot_row *row = &plot->rows[i];
        if (!is_point(&roof, row)) continue;
        least = fmin(least, row->rate), greatest = fmax(greatest, row->rate);
        fewest = fmin(fewest, row->intensity), most = fmax(most, row->intensity);
        count++;
    }
    double ridge = roof.peak / roof.bandwidth, height = fmax(HEIGHT, LEADING * (count + 2));
    double bottom = top + 40 + height;
    roof.x = svg_decades_of(fmin(fewest, ridge / 10) / 2, fmax(most, ridge) * 4, LEFT, RIGHT);
    roof.y = svg_decades_of(fmin(least, one->peak / 10) * GIGA / 2, greatest * GIGA * 1.5, bottom, top + 40);
    char words[128];
    snprintf(words, sizeof words, "%s: rates under the bounds of the machine", one->job);
    svg_text(out, 20, top + 20, "start", "font-weight=\"bold\"", words);
    put_axes(out, &roof);
    put_bounds(out, &roof);
    put_points(out, &roof, bottom);
    return bottom + 60;
}

double plot_roofs(FILE *out, const struct plot *plot, double top) {
    for (int i = 0; i < plot->count; i++) {
        const struct plot_row *row = &plot->rows[i];
        bool first = row->intensity > 0 && row->bandwidth > 0 && row->peak > 0;
        for (int j = 0; j < i && first; j++)
            first = plot->rows[j].intensity <= 0 || plot->rows[j].bandwidth <= 0 || plot->rows[j].peak <= 0 ||
                    strcmp(plot->rows[j].job, row->job) != 0;
        if (first) top = put_roof(out, plot, row, top);
    }
    return top;
}
