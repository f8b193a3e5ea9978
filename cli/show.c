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
    {"source", SMELT_STAGE_SOURCE}, {"rewritten", SMELT_STAGE_REWRITTEN},
    {"ir", SMELT_STAGE_IR},         {"simd", SMELT_STAGE_SIMD},
    {"asm", SMELT_STAGE_ASM},       {"ptx", SMELT_STAGE_PTX},
};
#define STAGE_COUNT (sizeof stages / sizeof *stages)

static bool find_stage(const struct options *o, smelt_stage *stage) {
    if (o->why) {
        *stage = SMELT_STAGE_WHY;
        return !o->stage || complain("--why and --stage are both given; one says what is shown");
    }
    const char *name = o->stage ? o->stage : "source";
    for (size_t i = 0; i < STAGE_COUNT; i++) {
        if (strcmp(name, stages[i].name) != 0) continue;
        *stage = stages[i].stage;
        return true;
    }
    return complain("stage '%s' is unknown; expected source, rewritten, ir, simd, asm or ptx", name);
}

/* Not a stage of one function: what the file itself holds. */
static int show_contents(const struct options *o) {
    smelt_library *library;
    char *text;
    if (!o->package_size) {
        complain("'%s' is no package; --stage contents is of packages", o->source_path);
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

static void print_help(void) {
    printf("usage: smelt show SOURCE [FUNCTION] [--stage STAGE | --why] OPTIONS\n\n"
           "Prints what a kernel becomes. The options are those of smelt run; arrays matter by dtype and "
           "shape only,\n"
           "so that --grid may be left out. Code is made for sizes of launch: what is shown is the code of "
           "full\n"
           "threadgroups (--threadgroup, default 256), without looks at the clock unless --timeout is "
           "given.\n\n"
           "  --stage source             the Metal text, with the generated signature (the default)\n"
           "  --stage rewritten          what clang is given\n"
           "  --stage ir                 LLVM IR after optimisation\n"
           "  --stage simd               vector IR of the SIMD engine, with the shape of each value\n"
           "  --stage asm                machine code of the device, as text\n"
           "  --stage ptx                code for an NVIDIA GPU, which need not be here\n"
           "  --stage contents           of a package: what made it, its targets, entries and codes\n"
           "  --target NAME              the GPUs that code is shown for: sm_80, sm_86, sm_87, sm_89, sm_90, "
           "sm_90a (default:\n"
           "                             this machine's GPU, and sm_90a where there is none)\n"
           "  --why                      for each gather, scatter, masked loop or refusal of the SIMD "
           "engine: the line\n"
           "                             that caused it, and why\n\n%s",
           options_help);
}

int command_show(int count, char **arguments) {
    struct options options;
    smelt_stage stage = SMELT_STAGE_SOURCE;
    int exit_status = options_parse(count, arguments, true, &options);
    if (exit_status == EXIT_OK && options.help) {
        print_help();
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
