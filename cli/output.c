#include "output.h"
#include "commands.h"
#include "picture.h"

int output_write(const smelt_array *array, const char *file) {
    if (picture_is_named(file)) return picture_write(array, file);
    smelt_status status = smelt_array_write_npy(array, file);
    if (status != SMELT_OK) (void)report(status);
    return status == SMELT_OK ? EXIT_OK : EXIT_ENVIRONMENT;
}
