/* Opening a pipe or device for writing. Needs nothing of the library: the command is built with it, too. */
#ifndef SMELT_BASE_IN_PLACE_H
#define SMELT_BASE_IN_PLACE_H

/* Opens what is not a regular file to be written. A named pipe that no program reads is waited for during
 * IN_PLACE_SECONDS: its reader may be starting. A descriptor, or -1 with errno. */
int in_place_open(const char *path);
#define IN_PLACE_SECONDS 5

/* Why it could not be opened or written, for a message: errno's text except for a pipe without a reader. */
const char *in_place_reason(const char *path, int error);

#endif
