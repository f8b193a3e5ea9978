#include "plot.h"
#include "commands.h"
#include "svg.h"
#include "values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void plot_add(struct plot *plot, const struct bench_result *r) {
    if (plot->count == PLOT_MOST || r->note || r->median <= 0) return;
    /* Figures may come again, compared with something else. */
    for (int i = 0; i < plot->count; i++)
        if (strcmp(plot->rows[i].job, r->job) == 0 && strcmp(plot->rows[i].variant, r->variant) == 0) return;
    struct plot_row *row = &plot->rows[plot->count++];
    *row = (struct plot_row){.rate = r->work > 0 ? r->work / r->median : r->median,
                             .intensity = r->bytes > 0 ? r->work / r->bytes : 0,
                             .peak = r->peak,
                             .bandwidth = r->bandwidth};
    snprintf(row->job, sizeof row->job, "%s", r->job);
    snprintf(row->variant, sizeof row->variant, "%s", r->variant);
    snprintf(row->anchor, sizeof row->anchor, "%s", r->anchor ? r->anchor : "");
    if (r->work > 0) snprintf(row->unit, sizeof row->unit, "%s", r->work_unit);
}

/* Other rows of the job tell what a row is for. */
static void assign_roles(struct plot *plot) {
    for (int i = 0; i < plot->count; i++)
        for (int j = 0; j < plot->count; j++) {
            struct plot_row *row = &plot->rows[i];
            const struct plot_row *other = &plot->rows[j];
            if (i == j || strcmp(row->job, other->job) != 0) continue;
            if (row->rate == other->peak || row->rate == other->bandwidth)
                row->role = PLOT_BOUND;
            else if (row->role == PLOT_MEASURED && strcmp(row->variant, other->anchor) == 0)
                row->role = PLOT_ANCHOR;
        }
}

static double put_legend(FILE *out, const struct plot *plot, double top) {
    static const char *const meanings[] = {[PLOT_MEASURED] = "measured",
                                           [PLOT_ANCHOR] = "what others of the job are compared with",
                                           [PLOT_BOUND] = "bound of the machine, measured"};
    double x = 20;
    for (int role = 0; role <= PLOT_BOUND; role++) {
        bool used = false;
        for (int i = 0; i < plot->count; i++) used |= (int)plot->rows[i].role == role;
        if (!used) continue;
        fprintf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"12\" fill=\"%s\"/>\n", x, top,
                plot_color(role));
        svg_text(out, x + 18, top + 10, "start", "", meanings[role]);
        x += 40 + SVG_LETTER * (double)strlen(meanings[role]);
    }
    return top + 24;
}

/* Writes all elements of the picture. Returns its height. */
static double put_all(FILE *out, const struct plot *plot) {
    double top = put_legend(out, plot, 16);
    return plot_roofs(out, plot, plot_bars(out, plot, top)) + 10;
}

static int complain_of(const char *file) {
    complain("--plot is '%s': %s", file, strerror(errno));
    return EXIT_ENVIRONMENT;
}

int plot_write(struct plot *plot, const char *file) {
    FILE *out = fopen(file, "w");
    if (!out) return complain_of(file);
    assign_roles(plot);
    /* The height is known after the elements, but is written before them. */
    char *inside = NULL;
    size_t length = 0;
    FILE *memory = open_memstream(&inside, &length);
    double height = memory ? put_all(memory, plot) : 0;
    bool good = memory && fclose(memory) == 0;
    if (good)
        fprintf(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "
                "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" "
                "fill=\"white\"/>\n%s</svg>\n",
                PLOT_WIDTH, height, inside);
    free(inside);
    good = good && !ferror(out);
    return fclose(out) == 0 && good ? EXIT_OK : complain_of(file);
}
