/* Finds the named pipe that a child process waits to open, which may last for ever. */
#ifndef SMELT_BASE_PIPE_WAIT_H
#define SMELT_BASE_PIPE_WAIT_H

#include <stdbool.h>
#include <sys/types.h>

#define PIPE_NAME_BYTES 4096

/* True if the process, or a descendant of it, is waiting to open a named pipe; `name` receives the name it
 * gave to the system. False if /proc does not show the system calls of children. */
bool pipe_wait_find(pid_t process, char name[PIPE_NAME_BYTES]);

#endif
