/* The operators of smelt.array, and the methods that need operations. */
#include "extension.h"

PyType_Slot array_operator_slots[] = {{0}};

PyMethodDef array_operator_methods[] = {{0}};
