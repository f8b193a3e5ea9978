/* Interned names, and caches of facts about objects. */
#include "extension.h"

struct interned interned;

int interned_init(void) {
    const struct {
        PyObject **name;
        const char *text;
    } names[] = {{&interned.numpy, "numpy"},
                 {&interned.array_struct, "__array_struct__"},
                 {&interned.dlpack, "__dlpack__"},
                 {&interned.dlpack_device, "__dlpack_device__"},
                 {&interned.requires_grad, "requires_grad"},
                 {&interned.is_conj, "is_conj"},
                 {&interned.is_neg, "is_neg"},
                 {&interned.dtype, "dtype"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!(*names[i].name = PyUnicode_InternFromString(names[i].text))) return -1;
    interned.empty_tuple = PyTuple_New(0);
    return interned.empty_tuple ? 0 : -1;
}

#define SLOTS (1u << POINTER_TABLE_BITS)

static unsigned slot_of(PyObject *key) {
    return (uint32_t)((uintptr_t)key >> 4) * 2654435761u >> (32 - POINTER_TABLE_BITS);
}

bool pointer_find(const struct pointer_table *table, PyObject *key, int *value) {
    for (unsigned i = slot_of(key); table->keys[i]; i = (i + 1) % SLOTS) {
        if (table->keys[i] != key) continue;
        *value = table->values[i];
        return true;
    }
    return false;
}

void pointer_add(struct pointer_table *table, PyObject *key, int value) {
    unsigned i = slot_of(key);
    if (table->count == (int)SLOTS / 2) return;
    while (table->keys[i] && table->keys[i] != key) i = (i + 1) % SLOTS;
    if (!table->keys[i]) {
        table->keys[i] = Py_NewRef(key);
        table->count++;
    }
    table->values[i] = value;
}
