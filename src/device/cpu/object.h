/* Loads the relocatable ELF files of code generation, without LLVM and without a linker. */
#ifndef SMELT_DEVICE_CPU_OBJECT_H
#define SMELT_DEVICE_CPU_OBJECT_H

#include "base/error.h"

/* A function that generated code may call. */
struct runtime_symbol {
    const char *name;
    const void *address;
};

/* The list, ended by a NULL name (runtime_symbols.c). */
extern const struct runtime_symbol runtime_symbols[];

struct object {
    char *memory; /* everything, mapped */
    size_t mapped;
    const char *code; /* the executable part of it */
    size_t code_size;
    const void *entry, *other; /* the functions `entry` and `other`; NULL: the file does not define it */
    const char *line_program;  /* .debug_line with relocations applied; NULL if there is none */
    size_t line_program_size;
};

/* Maps, relocates and protects. SMELT_ERROR_FORMAT names the error in the file. */
smelt_status object_load(const char *file, size_t size, const char *entry, const char *other,
                         struct object *object);
void object_unload(struct object *object);

/* The source position of an address in the code: false if the line table lacks it. `name` points into the
 * object. */
struct source_line {
    const char *file;
    int line;
};
bool object_line(const struct object *object, const void *address, struct source_line *line);

#endif
