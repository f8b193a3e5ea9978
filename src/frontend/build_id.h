/* What made this build: smelt's and LLVM's versions, and a hash of the sources that decide what code is made.
 */
#ifndef SMELT_FRONTEND_BUILD_ID_H
#define SMELT_FRONTEND_BUILD_ID_H

/* Part of cache keys (made at build time by cmake/build_id.py). */
extern const char build_id[];

#endif
