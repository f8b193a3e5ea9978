/* Any bytes as a package: as they are, and after a header with a matching checksum. An error, or a package
 * that is written back as it was read. */
#include "base/hash.h"
#include "abi/build_id.h"
#include "package/package.h"
#include "package/stream.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The parser's build accepts no others. */
const char bitcode_interface[] = "bitcode", code_interface[] = "code", build_id[] = "";

static void require(bool condition, const char *what) {
    if (condition) return;
    fprintf(stderr, "%s: %s\n", what, smelt_error());
    abort();
}

static void check(const char *bytes, size_t size) {
    struct package package = {.metal_version = 77};
    if (package_read("a package", bytes, size, &package) != SMELT_OK) {
        require(package.metal_version == 77 && *smelt_error(),
                "a failed read leaves the output and tells why");
        return;
    }
    struct text written = {0};
    require(package_write(&package, &written) == SMELT_OK, "a package that was read can be written");
    /* Flags are read as true or false, whatever the number was. */
    require(written.length == size, "and has the same length");
    package_free(&package);
    require(package_read("a package", written.data, written.length, &package) == SMELT_OK, "and read again");
    package_free(&package);
    text_free(&written);
}

/* The same as in format.c. */
struct header {
    char magic[8];
    uint32_t format, zero;
    uint64_t size;
    struct hash checksum;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    check((const char *)data, size);
    struct header header = {.magic = SMELT_PACKAGE_MAGIC, .format = PACKAGE_FORMAT};
    struct text whole = {0};
    text_append(&whole, (const char *)&header, sizeof header);
    write_string(&whole, "1");
    write_string(&whole, "19");
    write_string(&whole, bitcode_interface);
    write_string(&whole, code_interface);
    text_append(&whole, (const char *)data, size);
    header.size = whole.length;
    memcpy(whole.data, &header, sizeof header);
    header.checksum = hash_bytes(whole.data, whole.length);
    memcpy(whole.data, &header, sizeof header);
    check(whole.data, whole.length);
    text_free(&whole);
    return 0;
}
