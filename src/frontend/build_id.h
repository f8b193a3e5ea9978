/* What made this build: strings with versions and a hash of the sources that decide something (made at build
 * time by cmake/build_id.py). */
#ifndef SMELT_FRONTEND_BUILD_ID_H
#define SMELT_FRONTEND_BUILD_ID_H

/* Everything that decides what code is made: part of cache keys. */
extern const char build_id[];

/* What clang's bitcode expects of the passes, and what machine code expects of the engines: packages carry
 * both, and outlive all changes that leave these alone. */
extern const char bitcode_interface[], code_interface[];

#endif
