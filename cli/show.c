/* smelt show: the text of one stage on a kernel's way to machine code. */
#include "commands.h"
#include "options.h"
#include "session.h"
#include "values.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    smelt_stage stage;
} stages[] = {
    {"source", SMELT_STAGE_SOURCE},
    {"rewritten", SMELT_STAGE_REWRITTEN},
    {"ir", SMELT_STAGE_IR},
    {"simd", SMELT_STAGE_SIMD},
    {"asm", SMELT_STAGE_ASM},
    {"ptx", SMELT_STAGE_PTX},
    {"warnings", SMELT_STAGE_WARNINGS},
};
#define STAGE_COUNT (sizeof stages / sizeof *stages)

static bool find_stage(const struct options *o, smelt_stage *stage) {
    if (o->time) {
        const char *other = o->why ? "--why" : o->after ? "--after" : o->stage ? "--stage" : NULL;
        *stage = SMELT_STAGE_TIME;
        return !other || complain("--time and %s are both given; expected one of them", other);
    }
    if (o->why) {
        *stage = SMELT_STAGE_WHY;
        if (o->after) return complain("--why and --after are both given; expected one of them");
        return !o->stage || complain("--why and --stage are both given; expected one of them");
    }
    if (o->after) {
        *stage = SMELT_STAGE_IR;
        return !o->stage || complain("--after and --stage are both given; --after shows stage ir");
    }
    const char *name = o->stage ? o->stage : "source";
    for (size_t i = 0; i < STAGE_COUNT; i++) {
        if (strcmp(name, stages[i].name) != 0) continue;
        *stage = stages[i].stage;
        return true;
    }
    return complain("stage '%s' is unknown; expected source, rewritten, ir, simd, asm, ptx or warnings",
                    name);
}

/* Not a stage of one function: what the file itself holds. */
static int show_contents(const struct options *o) {
    smelt_library *library;
    char *text;
    if (!o->package_size) {
        complain("'%s' is not a package, which --stage contents requires", o->source_path);
        return EXIT_USAGE;
    }
    smelt_library_desc desc = {
        .path = o->source_label, .package = o->source, .package_size = o->package_size};
    smelt_status status = smelt_library_create(&desc, &library);
    if (status != SMELT_OK) return report(status);
    status = smelt_library_describe(library, o->function, &text);
    smelt_library_release(library);
    if (status != SMELT_OK) return report(status);
    fputs(text, stdout);
    smelt_free(text);
    return EXIT_OK;
}

int command_show(int count, char **arguments) {
    struct options options;
    smelt_stage stage = SMELT_STAGE_SOURCE;
    int exit_status = options_parse(&show_command, count, arguments, &options);
    if (exit_status == EXIT_OK && options.help) {
        print_command_help(&show_command);
    } else if (exit_status == EXIT_OK && options.stage && strcmp(options.stage, "contents") == 0) {
        exit_status = show_contents(&options);
    } else if (exit_status == EXIT_OK && !find_stage(&options, &stage)) {
        exit_status = EXIT_USAGE;
    } else if (exit_status == EXIT_OK) {
        struct session session;
        char *text = NULL;
        smelt_status status = session_open(&options, &session);
        if (status == SMELT_OK) status = session_show(&session, stage, &text);
        if (status == SMELT_OK) {
            fputs(text, stdout);
            smelt_free(text);
        }
        exit_status = report(status);
        session_close(&session);
    }
    options_free(&options);
    return exit_status;
}
