#include "kernel/found.h"
#include "frontend/diagnostic.h"
#include "smelt/check.h"

static int column_of(const struct translation *translation, const char *file, int line, int column) {
    return translation && line > 0 ? diagnostics_column(translation, file, line, column) : 0;
}

bool found_accept(const struct launch *launch, struct smelt_finding *f) {
    const struct translation *translation = launch->translation;
    if (translation && (diagnostics_ignored(translation, f->file, f->line, f->code) ||
                        diagnostics_ignored(translation, f->other_file, f->other_line, f->code)))
        return false;
    f->column = column_of(translation, f->file, f->line, f->column);
    f->other_column = column_of(translation, f->other_file, f->other_line, f->other_column);
    return true;
}
