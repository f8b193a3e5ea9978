/* The symbols that the text of an entry point (src/source/entry_point.c) and function constants
 * (attribute_list.c) define in their module. */
#ifndef SMELT_ABI_ENTRY_NAMES_H
#define SMELT_ABI_ENTRY_NAMES_H

#define ENTRY_NAME "__smelt_entry"         /* the function: of one thread, on GPUs the kernel */
#define QUESTIONS_NAME "__smelt_questions" /* a function: what the code asks about a launch */
#define BINDINGS_NAME "__smelt_bindings"   /* the table of its parameters */
#define TENSORS_NAME "__smelt_tensors"     /* which of them are tensors, and of what kind */
#define GUARDS_NAME "__smelt_guards"       /* which of them function constants guard */
#define APART_NAME "__smelt_apart"         /* a variable: contraction is off somewhere in the text */

/* Function constants: src/compiler/passes/constants.c says what follows. */
#define CONSTANT_NAME "smelt_constant_"
#define CONSTANT_INDEX_NAME CONSTANT_NAME "index_"
#define CONSTANT_TYPE_NAME CONSTANT_NAME "type_"

#endif
