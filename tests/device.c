#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *test_device(void) {
    const char *name = getenv("SMELT_TEST_DEVICE");
    return name && *name ? name : "cpu";
}

const char *test_oracle(void) {
    return strcmp(test_device(), "cpu") == 0 ? "cpu-scalar" : "cpu";
}

bool test_device_has_memory(void) {
    return strncmp(test_device(), "cpu", 3) != 0;
}

void test_quick_code(void) {
    (void)setenv("SMELT_TIERS", getenv("SMELT_TEST_FULL") ? "0" : "quick", 1);
}

smelt_status test_to_host(smelt_array **array) {
    if (strcmp(smelt_array_device(*array), "cpu") == 0) return SMELT_OK;
    smelt_array *here;
    smelt_status status = smelt_array_to(*array, "cpu", NULL, &here);
    if (status != SMELT_OK) return status;
    smelt_array_release(*array);
    *array = here;
    return SMELT_OK;
}

const char *test_source(const char *root, const char *path) {
    static _Thread_local char full[4096];
    const char *elsewhere = getenv("SMELT_TEST_SOURCES");
    snprintf(full, sizeof full, "%s/%s", elsewhere && *elsewhere ? elsewhere : root, path);
    return full;
}
