/* The symbols that the text of an entry point (src/source/program.c) defines in its module. */
#ifndef SMELT_ABI_ENTRY_NAMES_H
#define SMELT_ABI_ENTRY_NAMES_H

#define ENTRY_NAME "__smelt_entry"       /* the function: of one thread, on GPUs the kernel */
#define BINDINGS_NAME "__smelt_bindings" /* the table of its parameters */
#define GUARDS_NAME "__smelt_guards"     /* which of them function constants guard */

#endif
