/* Parts of SVG pictures: text, lines, and axes with round numbers. */
#ifndef SMELT_CLI_SVG_H
#define SMELT_CLI_SVG_H

#include <stdbool.h>
#include <stdio.h>

#define SVG_LETTER 6.7 /* an upper estimate of a letter's mean width, in text of 12 pixels */
#define SVG_GREY "#777777"
#define SVG_GRID "#dddddd"

/* Values from `low` to `high` lie from pixel `from` to pixel `to`. */
struct svg_scale {
    double low, high, from, to;
    bool logarithmic;
};

/* A scale that contains the values `least` to `greatest`: logarithmic if they differ by more than 20 times,
 * or from 0 on. Its ends are round numbers. */
struct svg_scale svg_scale_of(double least, double greatest, double from, double to);
/* A logarithmic one in any case. `least` is positive. */
struct svg_scale svg_decades_of(double least, double greatest, double from, double to);
double svg_place(const struct svg_scale *scale, double value);

/* The number of the scale's ticks with labels, at most `most`, in order. */
int svg_ticks(const struct svg_scale *scale, double *ticks, int most);

/* `anchor` is "start", "middle" or "end"; `style`, more attributes. */
void svg_text(FILE *out, double x, double y, const char *anchor, const char *style, const char *text);
void svg_line(FILE *out, double x0, double y0, double x1, double y1, const char *color);

#endif
