/* Objects that export a buffer: bytes, memoryview, array.array, ctypes. */
#include "interop.h"

static void drop_buffer(void *context) {
    if (Py_IsInitialized()) {
        PyGILState_STATE state = PyGILState_Ensure();
        PyBuffer_Release(context);
        PyGILState_Release(state);
    }
    free(context);
}

/* The format is one of struct's letters; its bytes are the buffer's. */
static bool dtype_of_format(const Py_buffer *view, smelt_dtype *dtype, bool *swapped) {
    const char *format = view->format ? view->format : "B";
    *swapped = *format == '>' || *format == '!';
    if (*format && strchr("@=<>!^", *format)) format++;
    bool complex = *format == 'Z';
    if (complex) format++;
    if (!*format || format[1]) return false;
    char kind = 0;
    if (complex)
        kind = *format == 'f' ? 'c' : 0;
    else if (strchr("bhilqn", *format))
        kind = 'i';
    else if (strchr("cBHILQN", *format))
        kind = 'u';
    else if (strchr("efd", *format))
        kind = 'f';
    else if (*format == '?')
        kind = 'b';
    *dtype = memory_dtype(kind, (int)view->itemsize);
    return *dtype != SMELT_NO_DTYPE;
}

/* ctypes gives no strides, which means row-major. */
static void read_layout(const Py_buffer *view, struct source *source) {
    int64_t step = view->itemsize;
    source->shape.ndim = view->ndim;
    for (int d = view->ndim - 1; d >= 0; d--) {
        source->shape.size[d] = view->shape ? view->shape[d] : view->len / view->itemsize;
        source->strides[d] = view->strides ? view->strides[d] : step;
        step *= source->shape.size[d];
    }
}

bool buffer_import(PyObject *o, const struct request *request, smelt_array **array) {
    struct source source;
    Py_buffer *view = malloc(sizeof *view);
    if (!view) {
        PyErr_NoMemory();
        return false;
    }
    if (PyObject_GetBuffer(o, view, PyBUF_RECORDS_RO) < 0) {
        free(view);
        return false;
    }
    bool good = memory_dimensions(view->ndim, request->what);
    if (good && !dtype_of_format(view, &source.dtype, &source.swapped)) {
        PyErr_Format(PyExc_TypeError, "%s: the elements of its buffer are '%s', expected one number each",
                     request->what, view->format);
        good = false;
    }
    if (!good) {
        drop_buffer(view);
        return false;
    }
    read_layout(view, &source);
    source.data = view->buf;
    source.readonly = view->readonly;
    source.release = drop_buffer;
    source.context = view;
    return memory_import(&source, request, array);
}
