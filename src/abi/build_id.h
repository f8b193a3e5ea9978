/* The identity of this build: strings with versions and a hash of the relevant sources (generated at build
 * time by cmake/build_id.py). */
#ifndef SMELT_ABI_BUILD_ID_H
#define SMELT_ABI_BUILD_ID_H

/* Everything that determines generated code: part of cache keys and of the messages between libsmelt and
 * smelt-cc1. */
extern const char build_id[];

/* What clang's bitcode requires of the passes, and what machine code requires of the engines. Packages carry
 * both, and survive changes that do not affect them. */
extern const char bitcode_interface[], code_interface[];

#endif
