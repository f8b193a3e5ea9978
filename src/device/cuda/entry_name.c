#include "device/cuda/entry_name.h"
#include "abi/entry_names.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

static void spell(char name[MOST_ENTRY_NAME], const char *kernel) {
    size_t length = 0;
    if (!isalpha((unsigned char)*kernel)) name[length++] = '_';
    for (; *kernel && length + 1 < MOST_ENTRY_NAME; kernel++)
        name[length++] = is_word(*kernel) ? *kernel : '_';
    name[length] = 0;
}

/* Whether the code uses the name as an identifier. Instructions and types have dots before or after them; the
 * only other reserved word is WARP_SZ. */
static bool is_taken(const char *ptx, size_t size, const char *name) {
    size_t length = strlen(name);
    if (strcmp(name, "WARP_SZ") == 0) return true;
    const char *end = ptx + size;
    for (const char *at = ptx; (at = memmem(at, (size_t)(end - at), name, length)); at += length) {
        char before = at == ptx ? ' ' : at[-1], after = at + length == end ? ' ' : at[length];
        if (!is_word(before) && before != '.' && before != '%' && !is_word(after) && after != '.')
            return true;
    }
    return false;
}

void cuda_name_entry(struct text *named, char name[MOST_ENTRY_NAME], const char *kernel, const char *ptx,
                     size_t size) {
    static const char own[] = ".entry " ENTRY_NAME "(";
    const char *entry = memmem(ptx, size, own, sizeof own - 1);
    spell(name, kernel);
    if (!entry || strcmp(name, "_") == 0 || is_taken(ptx, size, name)) {
        snprintf(name, MOST_ENTRY_NAME, "%s", ENTRY_NAME);
        text_append(named, ptx, size);
        return;
    }
    const char *rest = entry + sizeof own - 1;
    text_append(named, ptx, (size_t)(entry - ptx));
    text_addf(named, ".entry %s(", name);
    text_append(named, rest, (size_t)(ptx + size - rest));
}
