/* Bars: a section for each unit, which all jobs share, so that their rates can be compared. */
#include "plot.h"
#include "svg.h"

#include <math.h>
#include <string.h>

#define ROW 20
#define BAR 14
#define RIGHT 800 /* of the longest bar; its rate stands after it */
#define MOST_TICKS 24

static bool is_first_of_unit(const struct plot *plot, int at) {
    for (int i = 0; i < at; i++)
        if (strcmp(plot->rows[i].unit, plot->rows[at].unit) == 0) return false;
    return true;
}

/* Gigaunits per second, or milliseconds. */
static double value_of(const struct plot_row *row) {
    return *row->unit ? row->rate * 1e-9 : row->rate * 1e3;
}

/* The longest name decides where bars begin. */
static double left_of(const struct plot *plot) {
    size_t longest = 0;
    for (int i = 0; i < plot->count; i++) {
        size_t length = strlen(plot->rows[i].variant);
        if (length > longest) longest = length;
    }
    return 36 + SVG_LETTER * (double)longest;
}

static struct svg_scale scale_of(const struct plot *plot, const char *unit) {
    double least = INFINITY, greatest = 0;
    for (int i = 0; i < plot->count; i++)
        if (strcmp(plot->rows[i].unit, unit) == 0) {
            least = fmin(least, value_of(&plot->rows[i]));
            greatest = fmax(greatest, value_of(&plot->rows[i]));
        }
    return svg_scale_of(least, greatest, left_of(plot), RIGHT);
}

/* Lines through all bars of the section, with their values below. */
static void put_grid(FILE *out, const struct svg_scale *scale, double top, double bottom) {
    double ticks[MOST_TICKS];
    int count = svg_ticks(scale, ticks, MOST_TICKS);
    for (int i = 0; i < count; i++) {
        char words[32];
        double x = svg_place(scale, ticks[i]);
        svg_line(out, x, top, x, bottom, SVG_GRID);
        snprintf(words, sizeof words, "%g", ticks[i]);
        svg_text(out, x, bottom + 14, "middle", "fill=\"" SVG_GREY "\"", words);
    }
    svg_line(out, scale->from, bottom, scale->to, bottom, SVG_GREY);
}

static void put_bar(FILE *out, const struct plot_row *row, const struct svg_scale *scale, double y) {
    char words[32];
    double end = svg_place(scale, value_of(row));
    fprintf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", scale->from,
            y + (ROW - BAR) / 2.0, end - scale->from, BAR, plot_color(row->role));
    snprintf(words, sizeof words, "%.4g", value_of(row));
    svg_text(out, scale->from - 8, y + 14, "end", "", row->variant);
    svg_text(out, end + 6, y + 14, "start", "", words);
}

static double put_section(FILE *out, const struct plot *plot, const char *unit, double top) {
    struct svg_scale scale = scale_of(plot, unit);
    double height = 0;
    const char *job = "";
    for (int i = 0; i < plot->count; i++) {
        const struct plot_row *row = &plot->rows[i];
        if (strcmp(row->unit, unit) != 0) continue;
        height += ROW + (strcmp(job, row->job) != 0 ? 1.5 * ROW : 0);
        job = row->job;
    }
    char words[64];
    if (*unit)
        snprintf(words, sizeof words, "Rate in G%s/s", unit);
    else
        snprintf(words, sizeof words, "Time in ms");
    size_t length = strlen(words);
    snprintf(words + length, sizeof words - length, ", %s scale",
             scale.logarithmic ? "logarithmic" : "linear");
    put_grid(out, &scale, top, top + height + 6);
    double y = top;
    job = "";
    for (int i = 0; i < plot->count; i++) {
        const struct plot_row *row = &plot->rows[i];
        if (strcmp(row->unit, unit) != 0) continue;
        if (strcmp(job, row->job) != 0) {
            svg_text(out, 20, y + 20, "start", "font-weight=\"bold\"", row->job);
            y += 1.5 * ROW;
            job = row->job;
        }
        put_bar(out, row, &scale, y);
        y += ROW;
    }
    svg_text(out, (scale.from + scale.to) / 2, top + height + 38, "middle", "", words);
    return top + height + 60;
}

double plot_bars(FILE *out, const struct plot *plot, double top) {
    for (int i = 0; i < plot->count; i++)
        if (is_first_of_unit(plot, i)) top = put_section(out, plot, plot->rows[i].unit, top);
    return top;
}
