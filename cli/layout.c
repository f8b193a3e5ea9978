/* smelt layout: a picture of where the elements of a matrix lie. */
#include "commands.h"
#include "values.h"

#include "smelt/tensor.h"

#include <stdio.h>

struct request {
    const char *layout;
};

static bool parse_layout(void *target, char *text) {
    struct request *request = target;
    if (request->layout)
        return complain("layout '%s' follows layout '%s'; expected one", text, request->layout);
    request->layout = text;
    return true;
}

const struct command layout_command = {
    .name = "layout",
    .summary = "draw where the elements of a layout lie",
    .usage =
        "smelt layout LAYOUT\n\n"
        "Prints the offset of each element of a layout, in the words of <smelt/layout>: row_major<2, 6>(),\n"
        "column_major<2, 6>(), strided<2, 6, 1, 2>(), or blocked(row_major<1, 3>(), column_major<2, 2>()).",
    .argument = parse_layout,
};

int command_layout(int count, char **arguments) {
    struct request request = {0};
    enum parsed parsed = parse_options(&layout_command, count, arguments, &request);
    if (parsed == PARSED_HELP) print_command_help(&layout_command);
    if (parsed != PARSED) return parsed == PARSED_HELP ? EXIT_OK : EXIT_USAGE;
    if (!request.layout) {
        complain("no layout is given, expected one like 'row_major<2, 6>()'");
        return EXIT_USAGE;
    }
    char *text;
    smelt_status status = smelt_layout_picture(request.layout, &text);
    if (status != SMELT_OK) {
        report(status);
        return EXIT_USAGE;
    }
    fputs(text, stdout);
    smelt_free(text);
    return EXIT_OK;
}
