/* Opening a pipe or device for writing. Independent of the library, since the command also uses it. */
#ifndef SMELT_BASE_IN_PLACE_H
#define SMELT_BASE_IN_PLACE_H

/* Opens a file that is not regular for writing. Waits IN_PLACE_SECONDS for the reader of a named pipe, which
 * may be starting. A descriptor, or -1 with errno. */
int in_place_open(const char *path);
#define IN_PLACE_SECONDS 5

/* Why it could not be opened or written, for a message: errno's text except for a pipe without a reader. */
const char *in_place_reason(const char *path, int error);

#endif
