#include "kernel/found.h"
#include "check/finding.h"
#include "frontend/diagnostic.h"

static int column_of(const struct translation *translation, const char *file, int line, int column) {
    return translation && line > 0 ? diagnostics_column(translation, file, line, column) : 0;
}

smelt_status found_place(const struct translation *translation, smelt_status status) {
    smelt_finding *f;
    if (status != SMELT_ERROR_CHECK) return status;
    for (int i = 0; (f = findings_at(i)); i++) {
        f->column = column_of(translation, f->file, f->line, f->column);
        f->other_column = column_of(translation, f->other_file, f->other_line, f->other_column);
    }
    return status;
}
