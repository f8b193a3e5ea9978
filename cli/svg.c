#include "svg.h"

#include <math.h>

/* The largest ratio of values on a linear scale: the bars of smaller values would be too short to read. */
#define MOST_TIMES 20

static double power_below(double value) {
    return pow(10, floor(log10(value) + 1e-9));
}

/* 1, 2 or 5 times a power of ten, such that about five steps reach `greatest`. */
static double step_of(double greatest) {
    double rough = greatest / 5, power = power_below(rough);
    return power * (rough / power < 1.5 ? 1 : rough / power < 3.5 ? 2 : rough / power < 7.5 ? 5 : 10);
}

struct svg_scale svg_decades_of(double least, double greatest, double from, double to) {
    double low = power_below(least);
    if (least / low >= 5)
        low *= 5;
    else if (least / low >= 2)
        low *= 2;
    double high = power_below(greatest);
    while (high < greatest) high *= high * 2 >= greatest ? 2 : high * 5 >= greatest ? 5 : 10;
    return (struct svg_scale){.low = low, .high = high, .from = from, .to = to, .logarithmic = true};
}

struct svg_scale svg_scale_of(double least, double greatest, double from, double to) {
    /* The bar of the least value must have a length. */
    if (greatest > MOST_TIMES * least) return svg_decades_of(least / 2, greatest, from, to);
    double step = step_of(greatest);
    return (struct svg_scale){.high = step * ceil(greatest / step - 1e-9), .from = from, .to = to};
}

double svg_place(const struct svg_scale *s, double value) {
    double part =
        s->logarithmic ? log(value / s->low) / log(s->high / s->low) : (value - s->low) / (s->high - s->low);
    return s->from + (s->to - s->from) * part;
}

int svg_ticks(const struct svg_scale *s, double *ticks, int most) {
    int count = 0;
    if (!s->logarithmic) {
        double step = step_of(s->high);
        for (int i = 0; i * step <= s->high * (1 + 1e-9) && count < most; i++) ticks[count++] = i * step;
        return count;
    }
    static const double between[] = {1, 2, 5};
    double decades = log10(s->high / s->low);
    int each = decades > 2.5 ? 1 : 3, stride = 1 + (int)(decades / 10);
    for (double power = power_below(s->low); power <= s->high * (1 + 1e-9); power *= pow(10, stride))
        for (int i = 0; i < each && count < most; i++) {
            double tick = power * between[i];
            if (tick >= s->low * (1 - 1e-9) && tick <= s->high * (1 + 1e-9)) ticks[count++] = tick;
        }
    return count;
}

void svg_text(FILE *out, double x, double y, const char *anchor, const char *style, const char *text) {
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"%s%s>", x, y, anchor, *style ? " " : "",
            style);
    for (; *text; text++)
        if (*text == '<' || *text == '&')
            fputs(*text == '<' ? "&lt;" : "&amp;", out);
        else
            fputc(*text, out);
    fputs("</text>\n", out);
}

void svg_line(FILE *out, double x0, double y0, double x1, double y1, const char *color) {
    fprintf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", x0, y0, x1, y1,
            color);
}
