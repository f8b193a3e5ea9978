/* From a failed call of the library to the command's message and exit status. */
#include "commands.h"

#include <stdio.h>

int exit_status_of(smelt_status status) {
    switch (status) {
    case SMELT_OK:
        return EXIT_OK;
    case SMELT_ERROR_NO_COMPILER:
    case SMELT_ERROR_NO_DEVICE:
    case SMELT_ERROR_IO:
    case SMELT_ERROR_OUT_OF_MEMORY:
    case SMELT_ERROR_DEVICE_LOST:
    case SMELT_ERROR_INTERNAL:
        return EXIT_ENVIRONMENT;
    case SMELT_ERROR_FORMAT:
        return EXIT_USAGE;
    default:
        return EXIT_KERNEL;
    }
}

int report(smelt_status status) {
    if (status != SMELT_OK) fprintf(stderr, "smelt: %s\n", smelt_error());
    return exit_status_of(status);
}
