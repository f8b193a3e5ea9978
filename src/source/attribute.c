#include "source/attribute.h"

#include <string.h>

const struct attribute attributes[] = {
#define X(name, dimensions) {#name, dimensions},
    ATTRIBUTE_TABLE(X)
#undef X
        {NULL, 0},
};

const struct attribute *attribute_find(const char *name, size_t count) {
    for (const struct attribute *a = attributes; a->name; a++)
        if (strlen(a->name) == count && memcmp(a->name, name, count) == 0) return a;
    return NULL;
}
