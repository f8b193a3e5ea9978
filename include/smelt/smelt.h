/* smelt.h — run Metal compute kernels on machines without Metal.
 *
 * The whole public interface of libsmelt. Conventions:
 *
 * Status.    Every call that can fail returns a smelt_status. SMELT_OK is 0. After a failure
 *            smelt_error() returns the calling thread's message: a sentence that names the argument,
 *            the value and what was expected. On failure output arguments are left untouched.
 * Ownership. Handles (smelt_array, smelt_kernel, smelt_library, smelt_function) are reference
 *            counted. A call that returns a handle gives the caller one reference; release it with
 *            smelt_*_release. Releasing NULL does nothing. Strings and arrays passed in are copied;
 *            returned strings live as long as the handle they came from.
 * Defaults.  In descriptor structs zero means the default. Use designated initialisers.
 * Growth.    Each structure that calls read or fill, except smelt_shape, ends in `reserved` words.
 *            Later fields are taken from their front, so sizes and offsets do not change. They must
 *            be zero in structures you pass (else INVALID_ARGUMENT) and are zero in those you receive.
 * Threads.   Every function may be called from any thread. Handles may be shared between threads;
 *            the contents of one array must not be written by two calls at once.
 * Units.     Shapes and strides count elements; sizes called `bytes` count bytes; times are seconds.
 */
#ifndef SMELT_H
#define SMELT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SMELT_VERSION_MAJOR 0
#define SMELT_VERSION_MINOR 1
#define SMELT_VERSION_PATCH 0

#if defined(__GNUC__)
#define SMELT_API __attribute__((visibility("default")))
#else
#define SMELT_API
#endif

/* ---- Errors ------------------------------------------------------------------------------- */

/* Every status: code, name, meaning. */
#define SMELT_STATUS_TABLE(X)                                                                 \
    X(0, OK, "success")                                                                       \
    X(1, ERROR_INVALID_ARGUMENT, "an argument is missing, out of range or of the wrong kind") \
    X(2, ERROR_COMPILE, "the kernel's source does not compile")                               \
    X(3, ERROR_LIMIT, "a stated limit of the device or of smelt is exceeded")                 \
    X(4, ERROR_UNSUPPORTED, "the construct is recognised but not supported")                  \
    X(5, ERROR_BARRIER, "the threads of a threadgroup did not meet at one barrier")           \
    X(6, ERROR_FAULT, "the kernel accessed invalid memory")                                   \
    X(7, ERROR_TIMEOUT, "the kernel or the compiler ran longer than allowed")                 \
    X(8, ERROR_NO_COMPILER, "clang 19 or the compiler library is missing on this machine")    \
    X(9, ERROR_NO_DEVICE, "the device does not exist on this machine")                        \
    X(10, ERROR_IO, "a file could not be read or written")                                    \
    X(11, ERROR_FORMAT, "a file is damaged or has an unsupported format")                     \
    X(12, ERROR_OUT_OF_MEMORY, "out of memory")                                               \
    X(13, ERROR_DEVICE_LOST, "the device failed: a reset or a new process is needed")         \
    X(14, ERROR_INTERNAL, "internal error of smelt: please report it")                        \
    X(15, ERROR_INTERRUPTED, "the caller interrupted the run")                                \
    X(16, ERROR_CHECK, "a checked run found errors in the kernel")                            \
    X(17, ERROR_HEALTH, "a kernel reports that its numbers or its input do not allow the result")

typedef enum smelt_status {
#define SMELT_STATUS_ENUM(code, name, meaning) SMELT_##name = code,
    SMELT_STATUS_TABLE(SMELT_STATUS_ENUM)
#undef SMELT_STATUS_ENUM
} smelt_status;

/* The calling thread's last message, or "" if no call has failed. Valid until the thread's next smelt call.
 */
SMELT_API const char *smelt_error(void);

/* The name of a status, e.g. "SMELT_ERROR_COMPILE"; "SMELT_UNKNOWN" for other values. */
SMELT_API const char *smelt_status_name(smelt_status status);

/* The meaning of a status, in a few words. */
SMELT_API const char *smelt_status_meaning(smelt_status status);

typedef enum smelt_log_level { SMELT_LOG_WARNING = 0, SMELT_LOG_INFO = 1 } smelt_log_level;

/* Receives one line without its newline. May be called from any thread. */
typedef void smelt_log_callback(smelt_log_level level, const char *line, void *context);

/* Replaces the log callback; NULL restores the default (warnings to standard error, info nowhere). */
SMELT_API void smelt_set_log(smelt_log_callback *callback, void *context);

/* What is being compiled. Its strings live until the callback returns. */
typedef struct smelt_progress {
    const char *kernel; /* the name of the kernel that has been compiled longest; "": not known yet */
    const char *stage;  /* "clang", "optimise" …: what is done for it; NULL: nothing is compiled any more */
    double seconds;     /* for which this process has been compiling */
    int others;         /* how many more kernels are compiled at the moment */
    uint64_t reserved[4];
} smelt_progress;

/* Receives the progress of compiles once they take a second, and then ten times per second, on a thread of
 * smelt's. When none is left, it is called once more, with `stage` NULL, before the last of the compiling
 * calls returns. One call at a time. It must not call smelt: smelt_set_progress then only logs a warning. */
typedef void smelt_progress_callback(const smelt_progress *progress, void *context);

/* Replaces the receiver of progress, after a call of it that runs; NULL, the default: there is none. */
SMELT_API void smelt_set_progress(smelt_progress_callback *callback, void *context);

/* A receiver that shows the progress in one line on standard error, and erases it in the end. It does nothing
 * where standard error is not a terminal that can erase a line, or where SMELT_PROGRESS is 0. The context is
 * not used. */
SMELT_API void smelt_progress_on_terminal(const smelt_progress *progress, void *context);

/* The level of a line that a kernel logs: os_log's log_debug, log_info, log, log_error, log_fault. */
typedef enum smelt_kernel_log_level {
    SMELT_KERNEL_LOG_DEBUG = 0,
    SMELT_KERNEL_LOG_INFO,
    SMELT_KERNEL_LOG_DEFAULT,
    SMELT_KERNEL_LOG_ERROR,
    SMELT_KERNEL_LOG_FAULT
} smelt_kernel_log_level;

/* One line logged by one thread of a kernel. Its strings live until the callback returns. */
typedef struct smelt_kernel_line {
    smelt_kernel_log_level level;
    const char *kernel;    /* its name */
    uint32_t thread[3];    /* the thread's position in the grid */
    const char *subsystem; /* of the os_log object; "" for os_log_default */
    const char *category;
    const char *text; /* formatted, without a final newline; at most 4096 bytes */
    uint64_t reserved[4];
} smelt_kernel_line;

/* Receives the lines of a launch on the thread that runs it, after it has ended or failed, ordered by
 * threadgroup, by thread, and in the order in which a thread logged them. Launches of several threads may
 * call it at the same time. It may call smelt. */
typedef void smelt_kernel_log_callback(const smelt_kernel_line *line, void *context);

/* Replaces the receiver of kernels' lines; NULL restores the default, which writes
 * "kernel 'name' thread (3, 0, 0): text" to standard error. */
SMELT_API void smelt_set_kernel_log(smelt_kernel_log_callback *callback, void *context);

/* The most lines kept per launch; the number of dropped lines is logged as a warning. */
#define SMELT_MAX_LOG_LINES 10000

/* ---- Traces ------------------------------------------------------------------------------- */

/* Starts recording until smelt_trace_stop: compiles and their stages; launches with grid, threadgroup,
 * buffers and their bytes; the pool's threads; copies, fills and conversions of arrays; waits; and the times
 * at which launches, copies and replays ran on GPUs. smelt_trace_stop writes it to `path` in Chrome's
 * trace-event format, which Perfetto and chrome://tracing show. A process records one trace at a time; a
 * relative path refers to its current folder. The file appears, whole, when the trace is stopped: a process
 * that ends without stopping it leaves none, and a forked child has no trace. At most 500000 events are kept
 * (SMELT_TRACE_EVENTS); the number of dropped events is in the file as "dropped_events", and logged as a
 * warning. INVALID_ARGUMENT: `path` is NULL or empty, or a trace is already being recorded; IO: `path` cannot
 * be written. */
SMELT_API smelt_status smelt_trace_start(const char *path);

/* Ends the trace: waits for the work enqueued on GPUs since smelt_trace_start, and writes the file, without
 * unfinished work of other threads. INVALID_ARGUMENT: no trace is being recorded; IO: the file could not be
 * written, and the trace is lost. */
SMELT_API smelt_status smelt_trace_stop(void);

/* The library's version, "0.1.0". */
SMELT_API const char *smelt_version(void);

/* ---- Element types ------------------------------------------------------------------------ */

/* Name, bytes per element, name in kernel source. float64 exists on the host only (for references): kernels
 * reject it. */
#define SMELT_DTYPE_TABLE(X)                  \
    X(BOOL, bool, 1, "bool")                  \
    X(UINT8, uint8, 1, "uint8_t")             \
    X(UINT16, uint16, 2, "uint16_t")          \
    X(UINT32, uint32, 4, "uint32_t")          \
    X(UINT64, uint64, 8, "uint64_t")          \
    X(INT8, int8, 1, "int8_t")                \
    X(INT16, int16, 2, "int16_t")             \
    X(INT32, int32, 4, "int32_t")             \
    X(INT64, int64, 8, "int64_t")             \
    X(FLOAT16, float16, 2, "float16_t")       \
    X(BFLOAT16, bfloat16, 2, "bfloat16_t")    \
    X(FLOAT32, float32, 4, "float")           \
    X(COMPLEX64, complex64, 8, "complex64_t") \
    X(FLOAT64, float64, 8, "double")

typedef enum smelt_dtype {
    SMELT_NO_DTYPE = 0, /* "not given" */
#define SMELT_DTYPE_ENUM(upper, lower, bytes, source_name) SMELT_##upper,
    SMELT_DTYPE_TABLE(SMELT_DTYPE_ENUM)
#undef SMELT_DTYPE_ENUM
} smelt_dtype;

/* "float32" …; "none" for SMELT_NO_DTYPE and invalid values. */
SMELT_API const char *smelt_dtype_name(smelt_dtype dtype);

/* Bytes per element; 0 if `dtype` is invalid. */
SMELT_API size_t smelt_dtype_bytes(smelt_dtype dtype);

/* The dtype called `name`. SMELT_ERROR_INVALID_ARGUMENT lists the valid names. */
SMELT_API smelt_status smelt_dtype_from_name(const char *name, smelt_dtype *dtype);

/* ---- Arrays ------------------------------------------------------------------------------- */

#define SMELT_MAX_DIMENSIONS 16

/* A shape: `ndim` sizes, all >= 0. ndim 0 is a scalar. */
typedef struct smelt_shape {
    int ndim;
    int64_t size[SMELT_MAX_DIMENSIONS];
} smelt_shape;

/* An n-dimensional array in the memory of the host or of a device: dtype, shape, strides in elements, and a
 * reference to its memory, which views share. */
typedef struct smelt_array smelt_array;

/* Elements for a kernel's argument of type `tensor`, with what belongs to them: smelt/tensor.h. */
typedef struct smelt_tensor smelt_tensor;

/* A sequence of work on a device: see Streams below. */
typedef struct smelt_stream smelt_stream;

/* A new row-contiguous array with undefined contents. INVALID_ARGUMENT for an invalid dtype, ndim or size;
 * LIMIT if the bytes overflow; OUT_OF_MEMORY. */
SMELT_API smelt_status smelt_array_create(smelt_dtype dtype, smelt_shape shape, smelt_array **array);

/* An array over the caller's memory: element (0, …) is at `data`. `strides` in elements, may be negative or
 * 0; NULL means row-contiguous. `release(context)` is called when the last reference is released (may be
 * NULL). The memory must stay valid until then. */
SMELT_API smelt_status smelt_array_from_memory(smelt_dtype dtype, smelt_shape shape, const int64_t *strides,
                                               void *data, void (*release)(void *context), void *context,
                                               smelt_array **array);

/* A new row-contiguous array filled with a copy of `count` elements at `data` (count = the shape's product).
 */
SMELT_API smelt_status smelt_array_from_values(smelt_dtype dtype, smelt_shape shape, const void *data,
                                               smelt_array **array);

/* A view of `base`'s memory: element (0, …) is `offset` elements after base's; strides in elements.
 * INVALID_ARGUMENT if an element of the view would lie outside base's memory. */
SMELT_API smelt_status smelt_array_view(smelt_array *base, smelt_shape shape, const int64_t *strides,
                                        int64_t offset, smelt_array **view);

/* A view of the bytes of `base` as elements of `dtype`. If their sizes differ, the last dimension must be
 * dense and gets proportionally more or fewer elements. INVALID_ARGUMENT if the bytes are not a whole number
 * of elements or not aligned for them. */
SMELT_API smelt_status smelt_array_reinterpret(smelt_array *base, smelt_dtype dtype, smelt_array **view);

SMELT_API smelt_array *smelt_array_retain(smelt_array *array);
SMELT_API void smelt_array_release(smelt_array *array);

SMELT_API smelt_dtype smelt_array_dtype(const smelt_array *array);
SMELT_API smelt_shape smelt_array_shape(const smelt_array *array);
/* ndim strides in elements. */
SMELT_API const int64_t *smelt_array_strides(const smelt_array *array);
/* The number of elements: the product of the shape, 1 for a scalar. */
SMELT_API int64_t smelt_array_size(const smelt_array *array);
/* The address of element (0, …), in the memory of the array's device: the host cannot read a GPU's. */
SMELT_API void *smelt_array_data(const smelt_array *array);
/* The device that holds its memory: "cpu", "cuda:0". */
SMELT_API const char *smelt_array_device(const smelt_array *array);
/* True if the elements are in row-major order without gaps. */
SMELT_API bool smelt_array_is_contiguous(const smelt_array *array);

/* Sets every element. Conversion as in smelt_array_convert; complex64 gets an imaginary part of 0. */
SMELT_API smelt_status smelt_array_fill(smelt_array *array, double value);

/* Copies `from` into `to` element by element, converting; shapes must be equal. The two may not overlap. */
SMELT_API smelt_status smelt_array_copy(smelt_array *to, const smelt_array *from);

/* A row-contiguous copy as `dtype`. Floats round to nearest even; float to integer truncates toward zero and
 * saturates, NaN becomes 0; integers wrap (as in C); to bool: != 0; complex to real drops the imaginary part.
 */
SMELT_API smelt_status smelt_array_convert(const smelt_array *array, smelt_dtype dtype, smelt_array **result);

/* `array` itself with one more reference if it is row-contiguous, else a row-contiguous copy. */
SMELT_API smelt_status smelt_array_contiguous(smelt_array *array, smelt_array **result);

/* ---- Arrays on devices. A launch moves arrays to its device by itself; these calls control when.
 *
 * `device` is a name of smelt_device_name, "cuda" means "cuda:0", "cpu" the host's memory. NO_DEVICE if it
 * does not exist. An array in flight is kept until the device has finished with it; two streams use an array
 * in the order of the calls. */

/* A new row-contiguous array on `device` with undefined contents. OUT_OF_MEMORY names the requested and the
 * free bytes. */
SMELT_API smelt_status smelt_array_create_on(const char *device, smelt_dtype dtype, smelt_shape shape,
                                             smelt_array **array);

/* An array over the caller's memory on `device`, like smelt_array_from_memory for the host's. The caller's
 * own work on that memory must have ended, or be on the stream that uses it first. When `release` is called,
 * nothing uses the memory any more; without it, the caller must wait for the device before freeing the
 * memory. */
SMELT_API smelt_status smelt_array_from_device_memory(const char *device, smelt_dtype dtype,
                                                      smelt_shape shape, const int64_t *strides, void *data,
                                                      void (*release)(void *context), void *context,
                                                      smelt_array **array);

/* `array` on `device`: itself with one more reference if it is already there, else a copy with strides in the
 * same order, or row-contiguous. A copy to the host has ended when the call returns. A copy to a device is
 * enqueued on `stream` (NULL: the device's default), and `array` may be changed at once. Late errors of
 * kernels that wrote it are returned here. */
SMELT_API smelt_status smelt_array_to(smelt_array *array, const char *device, smelt_stream *stream,
                                      smelt_array **result);

/* Whether all work has ended on the stream that wrote the array last, so that smelt_array_to copies it to the
 * host without waiting for a kernel. Arrays in the host's memory are always ready. Late errors of kernels are
 * returned here. */
SMELT_API smelt_status smelt_array_is_ready(const smelt_array *array, bool *ready);

/* New arrays with generated contents. The bits come from Philox4x32-10: element i takes word i % 4 of key =
 * seed, counter = (i / 4, draw), where draw is 0, or 1 for a second word (64-bit integers, imaginary parts,
 * normal). They do not depend on the shape. uniform: floats in [0, 1) (24 random bits, rounded down to the
 * dtype), integers over their full range, bool by the lowest bit. normal: Box–Muller on two such floats,
 * float dtypes and complex64 only. arange: 0, 1, 2 … in row-major order. */
SMELT_API smelt_status smelt_array_uniform(smelt_dtype dtype, smelt_shape shape, uint64_t seed,
                                           smelt_array **array);
SMELT_API smelt_status smelt_array_normal(smelt_dtype dtype, smelt_shape shape, uint64_t seed,
                                          smelt_array **array);
SMELT_API smelt_status smelt_array_arange(smelt_dtype dtype, smelt_shape shape, smelt_array **array);

/* Reads a .npy file (format versions 1, 2, 3; either byte order; C or Fortran order, which is kept as
 * strides). `dtype`: SMELT_NO_DTYPE means the file's; SMELT_BFLOAT16 reads a `V2` file as bfloat16. IO if it
 * cannot be read; FORMAT with the reason if it is damaged or has another dtype. */
SMELT_API smelt_status smelt_array_read_npy(const char *path, smelt_dtype dtype, smelt_array **array);

/* Writes a .npy file, little endian, C order; bfloat16 as `V2`. A regular file is replaced whole or not at
 * all. */
SMELT_API smelt_status smelt_array_write_npy(const smelt_array *array, const char *path);

/* ---- Running: what kernels and library functions share ------------------------------------- */

#define SMELT_MAX_ARGUMENTS 64
#define SMELT_MAX_TEMPLATES 32
#define SMELT_MAX_BUFFERS 31
#define SMELT_MAX_CONSTANTS 64
#define SMELT_MAX_INCLUDE_PATHS 16

typedef enum smelt_math_mode {
    SMELT_MATH_SAFE = 0, /* IEEE special values kept */
    SMELT_MATH_RELAXED,  /* reassociation and reciprocals allowed, special values kept */
    SMELT_MATH_FAST      /* assumes no NaN and no infinity; __FAST_MATH__ is defined */
} smelt_math_mode;

/* Facts about one run; filled if a descriptor points to one. */
typedef struct smelt_run_info {
    char device[32];
    uint64_t threads[3];           /* the grid, in threads */
    uint64_t groups[3];            /* threadgroups */
    uint32_t threads_per_group[3]; /* of a full group */
    double seconds;                /* the launch alone, on the wall clock */
    double compile_seconds;        /* 0 if the kernel was in memory */
    bool cache_hit;                /* no compiler ran: the code came from the disk cache, or a package */
    bool quick;                 /* quick code ran, since the best was not compiled yet: smelt_kernel_wait */
    uint64_t threadgroup_bytes; /* threadgroup memory of one group */
    uint64_t private_bytes;     /* private arrays of one thread */
    uint64_t log_lines;         /* logged by the kernel and passed to the receiver */
    uint64_t dropped_log_lines; /* beyond SMELT_MAX_LOG_LINES */
    uint64_t reserved[8];
} smelt_run_info;

/* The name of a device of this machine; NULL past the last. `reason` (may be NULL) receives "", or why the
 * device cannot be used. */
SMELT_API const char *smelt_device_name(int index, const char **reason);

/* A sentence that describes a device; NULL if `name` does not exist. */
SMELT_API const char *smelt_device_description(const char *name);

/* The number of threads that run a launch on a CPU device; 0 for other devices and unknown names. */
SMELT_API int smelt_device_threads(const char *name);

/* Bits of the vector registers that code for a CPU device uses: 512 (AVX-512), 256 (AVX2) or 128 (SSE2), from
 * this machine or SMELT_CPU. 0 for `cpu-scalar`, other devices and unknown names, and if the compiler library
 * cannot be opened. */
SMELT_API int smelt_device_vector_bits(const char *name);

/* The version of CUDA that a GPU's driver supports, 1000 times its major plus 10 times its minor number:
 * 13000 is 13.0. 0 for other devices and unknown names. */
SMELT_API int smelt_device_driver_version(const char *name);

/* The free and total bytes of a device's memory. INVALID_ARGUMENT for a CPU. */
SMELT_API smelt_status smelt_device_memory(const char *name, uint64_t *free_bytes, uint64_t *total_bytes);

/* Waits for everything enqueued on the device; late errors are returned. */
SMELT_API smelt_status smelt_device_wait(const char *name);

/* Destroys everything on the device, including the memory of other libraries in the process. Existing arrays,
 * streams, events and recordings of the device can only be released. After DEVICE_LOST it may make the device
 * usable again. If the driver gives a process no new context after a kernel's fault (NVIDIA's 580 does not),
 * it returns DEVICE_LOST, and only a new process can use the device. A process forked from one that used a
 * GPU cannot use GPUs: every call returns NO_DEVICE. */
SMELT_API smelt_status smelt_device_reset(const char *name);

/* ---- Stopping a run ------------------------------------------------------------------------- */

/* A flag that ends runs in progress: passed to a run (smelt_run_desc, smelt_dispatch_desc) and raised by
 * another thread or a signal handler. Any number of runs may share one, one after another or at once. Its
 * last reference must not be released before these runs return.
 *
 * A run whose interrupt is raised, before or while it runs, soon returns SMELT_ERROR_INTERRUPTED, unless it
 * has already finished. On a CPU this takes a few milliseconds, even in endless loops, and does not slow the
 * kernel down. Runs that are compiling or waiting for their turn also end. The run creates no outputs; arrays
 * that its kernel writes in place hold partial results. The next run may follow at once, and other runs are
 * not affected.
 *
 * On a GPU, a launch that also has a time-out is stopped in the same way. A launch without one is enqueued
 * and not waited for; smelt_stream_is_done and smelt_array_is_ready tell whether it has ended.
 *
 * smelt sends its threads, and callers' threads while they run a kernel, the signal SIGURG for this; other
 * signals of that number go to the previous handler. */
typedef struct smelt_interrupt smelt_interrupt;

SMELT_API smelt_status smelt_interrupt_create(smelt_interrupt **interrupt);
SMELT_API smelt_interrupt *smelt_interrupt_retain(smelt_interrupt *interrupt);
SMELT_API void smelt_interrupt_release(smelt_interrupt *interrupt);
/* Stays raised until it is cleared. May be called in a signal handler. NULL does nothing. */
SMELT_API void smelt_interrupt_raise(smelt_interrupt *interrupt);
/* A concurrent run may still end as interrupted. May be called in a signal handler. */
SMELT_API void smelt_interrupt_clear(smelt_interrupt *interrupt);
SMELT_API bool smelt_interrupt_is_raised(const smelt_interrupt *interrupt);
/* The process's interrupt that ends a run, as if it were raised, only where code would be compiled. A launch
 * on a GPU then only enqueues, and its caller need not prepare for a long call: if it returns
 * SMELT_ERROR_INTERRUPTED, the caller does so and repeats it. Not to be raised, nor released. */
SMELT_API smelt_interrupt *smelt_interrupt_before_compile(void);

/* ---- Streams, events, recordings ------------------------------------------------------------ */

/* Work on one stream runs in order; different streams may overlap. On a CPU, work has ended when its call
 * returns; streams exist there so that the same program runs. */
SMELT_API smelt_status smelt_stream_create(const char *device, smelt_stream **stream);
/* A stream over the caller's CUstream (NULL is CUDA's default stream), which must outlive it. */
SMELT_API smelt_status smelt_stream_from_native(const char *device, void *native, smelt_stream **stream);
/* Memory of the caller's for a native stream. take: `bytes` of the device's memory, aligned to 256, that work
 * on `native` may use from then on; NULL: there is none. give: what take gave, which nothing enqueued uses
 * any more out of the order of `native`. Called on threads that call smelt. */
typedef struct smelt_stream_memory {
    void *(*take)(void *context, void *native, size_t bytes);
    void (*give)(void *context, void *address);
    void *context; /* must outlive all arrays of the memory */
} smelt_stream_memory;
/* Where results and launches on `stream` have their memory from while the caller captures it into a CUDA
 * graph. Without it, that memory exists only while the graph runs, so that a graph with results can be
 * launched once. `memory` is copied; NULL: none. INVALID_ARGUMENT for a stream that is not from
 * smelt_stream_from_native, or for a NULL function. On a CPU it does nothing. */
SMELT_API smelt_status smelt_stream_set_memory(smelt_stream *stream, const smelt_stream_memory *memory);
/* The device's default stream, for calls without a stream. */
SMELT_API smelt_status smelt_stream_default(const char *device, smelt_stream **stream);
SMELT_API void *smelt_stream_native(const smelt_stream *stream);
SMELT_API smelt_stream *smelt_stream_retain(smelt_stream *stream);
SMELT_API void smelt_stream_release(smelt_stream *stream);
/* Waits for all enqueued work. FAULT with the kernel's name if one accessed invalid memory; the device is
 * then lost. */
SMELT_API smelt_status smelt_stream_wait(smelt_stream *stream);
/* Whether all enqueued work has ended, so that smelt_stream_wait returns at once. Fails like
 * smelt_stream_wait. A CPU's stream is always done. */
SMELT_API smelt_status smelt_stream_is_done(smelt_stream *stream, bool *done);

/* A point in a stream. An unrecorded event is done. */
typedef struct smelt_event smelt_event;
SMELT_API smelt_status smelt_event_create(const char *device, smelt_event **event);
SMELT_API smelt_event *smelt_event_retain(smelt_event *event);
SMELT_API void smelt_event_release(smelt_event *event);
/* Sets the event to this point of the stream: it is done when all work enqueued before has ended. */
SMELT_API smelt_status smelt_event_record(smelt_event *event, smelt_stream *stream);
/* Later work on `stream` waits for the event; the caller does not. */
SMELT_API smelt_status smelt_stream_wait_event(smelt_stream *stream, smelt_event *event);
/* The caller waits. */
SMELT_API smelt_status smelt_event_wait(smelt_event *event);
/* Has it happened? */
SMELT_API smelt_status smelt_event_is_done(smelt_event *event, bool *done);
/* Seconds of the device's clock from `start` to `end`, both recorded; waits for `end`. */
SMELT_API smelt_status smelt_event_seconds(smelt_event *start, smelt_event *end, double *seconds);

/* A sequence of launches that one call enqueues again: a CUDA graph. */
typedef struct smelt_recording smelt_recording;
/* Until smelt_stream_record_end, launches on `stream` (not the default stream) are recorded, not run. Their
 * code must be compiled, all arrays must be on the device, and none may need waiting. What travels with a
 * launch, bytes and small host arrays behind `constant` references and pointers, is recorded with its
 * contents. Each replay writes the outputs they allocate again. The recording keeps what launches use until
 * it is released. UNSUPPORTED for a CPU's stream. */
SMELT_API smelt_status smelt_stream_record_begin(smelt_stream *stream);
SMELT_API smelt_status smelt_stream_record_end(smelt_stream *stream, smelt_recording **recording);
/* Enqueues the launches again, after other uses of their arrays. `stream` may be any of the device; NULL: its
 * default. */
SMELT_API smelt_status smelt_recording_replay(smelt_recording *recording, smelt_stream *stream);
SMELT_API smelt_recording *smelt_recording_retain(smelt_recording *recording);
SMELT_API void smelt_recording_release(smelt_recording *recording);

/* ---- Kernels from bodies ------------------------------------------------------------------- */

/* A kernel from the body of a Metal function. Its signature is generated from names and arrays, as by MLX's
 * metal_kernel. */
typedef struct smelt_kernel smelt_kernel;

typedef struct smelt_kernel_desc {
    const char *name;   /* required: an identifier; the function is custom_kernel_<name> */
    const char *source; /* required: the body */
    const char *header; /* text put before the function; may be NULL */
    const char *inputs[SMELT_MAX_ARGUMENTS];  /* names in order, ended by NULL */
    const char *outputs[SMELT_MAX_ARGUMENTS]; /* names in order, ended by NULL; at least one */
    bool strided;        /* pass inputs with their strides (ensure_row_contiguous = false) */
    bool atomic_outputs; /* every output is `device atomic<T>*` */
    bool atomic_output[SMELT_MAX_ARGUMENTS]; /* or only these */
    smelt_math_mode math;
    int metal_version; /* __METAL_VERSION__: 310 …; 0: 320 for Metal 3.2, 410 for sources with tensors */
    const char *include_paths[SMELT_MAX_INCLUDE_PATHS]; /* for #include in header and body, ended by NULL */
    const char *source_label;  /* file name for messages about the body; default "<name>.body" */
    const char *header_label;  /* file name for messages about the header; default "<name>.header" */
    const char *const *macros; /* "NAME" (which is 1) or "NAME=TEXT", ended by NULL; may be NULL */
    uint64_t reserved[7];
} smelt_kernel_desc;

/* Checks the descriptor and keeps a copy; compiles nothing. INVALID_ARGUMENT, LIMIT, OUT_OF_MEMORY. */
SMELT_API smelt_status smelt_kernel_create(const smelt_kernel_desc *desc, smelt_kernel **kernel);
SMELT_API smelt_kernel *smelt_kernel_retain(smelt_kernel *kernel);
SMELT_API void smelt_kernel_release(smelt_kernel *kernel);

typedef enum smelt_template_kind {
    SMELT_TEMPLATE_NONE = 0,
    SMELT_TEMPLATE_DTYPE,
    SMELT_TEMPLATE_INT,
    SMELT_TEMPLATE_BOOL
} smelt_template_kind;

/* One template argument: `typename NAME`, `int NAME` or `bool NAME`. */
typedef struct smelt_template {
    const char *name; /* NULL ends the list */
    smelt_template_kind kind;
    smelt_dtype dtype;
    int64_t integer; /* must fit in int32 */
    bool boolean;
    uint64_t reserved[2];
} smelt_template;

typedef struct smelt_run_desc {
    smelt_array *inputs[SMELT_MAX_ARGUMENTS]; /* as many as the kernel names */
    int64_t grid[3];                          /* threads; x > 0; y and z: 0 means 1 */
    int64_t threadgroup[3]; /* threads per group; x > 0; y and z: 0 means 1; product <= 1024 */
    smelt_template templates[SMELT_MAX_TEMPLATES];  /* ended by a NULL name */
    smelt_shape output_shapes[SMELT_MAX_ARGUMENTS]; /* one per output */
    smelt_dtype output_dtypes[SMELT_MAX_ARGUMENTS]; /* one per output */
    int output_count;          /* 0: the number of output_dtypes; else must equal the kernel's */
    bool initialise;           /* fill outputs before the run … */
    double init_value;         /* … with this value */
    const double *init_values; /* or one value per output (implies initialise) */
    const char *device;        /* default "cpu" */
    const char *profile;       /* device limits to apply: NULL or "apple" */
    double timeout;            /* seconds; 0: none. On a GPU a launch that has one is waited for. */
    smelt_run_info *info;      /* may be NULL. On a GPU a launch that has one is waited for. */
    smelt_stream *stream;      /* of the device; NULL: its default */
    /* For smelt_kernel_show: the GPU to show code for, "sm_80" (SMELT_STAGE_ASM is then PTX). NULL: the
     * device's; for SMELT_STAGE_PTX on a CPU, the present GPU's, or "sm_90a" if there is none. */
    const char *target;
    smelt_interrupt *interrupt; /* ends the run when it is raised; may be NULL */
    /* Arrays to write into instead of new ones, one per output; NULL: a new one. Each has the output's dtype
     * and shape (still required above), is row-contiguous and in the device's memory. It may share memory
     * with an input if no thread reads what another one writes. */
    smelt_array *into[SMELT_MAX_ARGUMENTS];
    /* For SMELT_STAGE_IR of smelt_kernel_show: the compiler's pass after which it is shown. The message for a
     * wrong name lists the passes. NULL: the last pass shared by all engines. */
    const char *after;
    bool check; /* every access of memory is checked: <smelt/check.h> */
    /* On a CPU: the code does not test its accesses against the bounds of their arrays. An access that misses
     * its array may then change or read other memory of the process. Without effect if `check` is set. */
    bool unchecked;
    /* What a checked run looks for besides: words separated by commas, of "not-finite", "unsigned",
     * "divergent", "conversions", "advice", "all" (docs/checking.md). NULL: nothing. The environment variable
     * SMELT_CHECK_ALSO adds to it. */
    const char *also;
    uint64_t reserved[5];
} smelt_run_desc;

/* Compiles if needed, allocates the outputs, and runs. On a CPU the run has ended on return. On a GPU it is
 * enqueued on the stream, and the next call that waits for it returns a late error. outputs[i] receives a new
 * reference to output i, row-contiguous, in the device's memory. Inputs may be on the host or on the device.
 * Errors: every status except FORMAT. */
SMELT_API smelt_status smelt_kernel_run(smelt_kernel *kernel, const smelt_run_desc *desc,
                                        smelt_array **outputs);

/* Quick code. The best code of a large kernel may take seconds to compile. smelt_kernel_run and
 * smelt_function_run then use code that gives the same bits, is compiled sooner and runs more slowly. The
 * best is compiled in the background. Later launches run it, and a launch that is under way on a CPU
 * continues with it. Kernels without such code wait for the best: those with atomic operations whose order
 * matters, and with math modes other than safe, for example. So do launches with a time-out of less than 30
 * seconds, smelt_kernel_prepare, recordings, and packages. A process that exits does not wait for compiles in
 * the background, except for the assembler in a GPU's driver; a forked child starts its own.
 *
 * Waits for the best code of all launches of the kernel so far. An error is that of the first compile that
 * failed (COMPILE, LIMIT, TIMEOUT …): launches go on with quick code. INTERRUPTED: `interrupt` (may be NULL)
 * was raised; the compiles go on. */
SMELT_API smelt_status smelt_kernel_wait(smelt_kernel *kernel, smelt_interrupt *interrupt);

/* A launch that is checked and compiled once and run many times, without repeated checks. It keeps its
 * kernel, inputs and `into`. Several threads may run it at the same time if it allocates its outputs. */
typedef struct smelt_launch smelt_launch;

/* Prepares what smelt_kernel_run would run with `desc` (`info` and `target` are ignored), with its errors,
 * and compiles missing code, the best; runs nothing. */
SMELT_API smelt_status smelt_kernel_prepare(smelt_kernel *kernel, const smelt_run_desc *desc,
                                            smelt_launch **launch);
SMELT_API smelt_launch *smelt_launch_retain(smelt_launch *launch);
SMELT_API void smelt_launch_release(smelt_launch *launch);

/* Releases the prepared inputs. The launch keeps their dtypes and shapes, and every later run must pass
 * inputs. No other thread may use the launch during this call. After OUT_OF_MEMORY it is unchanged. */
SMELT_API smelt_status smelt_launch_forget(smelt_launch *launch);

/* Changes to the prepared launch for one run. */
typedef struct smelt_launch_desc {
    /* As many as the kernel names, with the prepared dtypes and shapes; NULL: the prepared inputs. */
    smelt_array *const *inputs;
    /* One per output, as in smelt_run_desc; NULL, as the list or an element: the prepared one. */
    smelt_array *const *into;
    smelt_stream *stream;       /* NULL: the prepared one */
    smelt_run_info *info;       /* as in smelt_run_desc */
    smelt_interrupt *interrupt; /* ends the run when it is raised; NULL: the prepared one */
    uint64_t reserved[8];
} smelt_launch_desc;

/* Runs the launch with the current contents of its inputs. `desc` may be NULL. outputs[i] receives a new
 * reference to output i; outputs may be NULL if `into` holds all of them. Errors: those of smelt_kernel_run.
 */
SMELT_API smelt_status smelt_launch_run(smelt_launch *launch, const smelt_launch_desc *desc,
                                        smelt_array **outputs);

typedef enum smelt_stage {
    SMELT_STAGE_SOURCE = 0, /* the Metal text with its generated signature */
    SMELT_STAGE_REWRITTEN,  /* the text passed to clang */
    SMELT_STAGE_IR,         /* LLVM IR after optimisation, before the engine's passes */
    SMELT_STAGE_ASM,        /* machine code of the chosen device, as text */
    SMELT_STAGE_SIMD,       /* the SIMD engine's vector IR, with the shape of each value */
    SMELT_STAGE_WHY,        /* per line, what is not plain vector code in the SIMD engine, and why; for a GPU,
                               how many of the kernel's threads one of its threads does the work of, or why not */
    SMELT_STAGE_PTX,        /* for NVIDIA GPUs; also on machines without one */
    SMELT_STAGE_TIME,       /* a table: how long each stage takes, and the IR's size after it */
    SMELT_STAGE_WARNINGS    /* the compiler's warnings about the source, each with its line and its name, such
                               as -Wunused-variable; "" if there are none */
} smelt_stage;

/* The text of one stage for what smelt_kernel_run would run with `desc` (the contents of arrays do not
 * matter). Code depends on the launch's sizes: that of full threadgroups is shown. grid and threadgroup may
 * be 0, for one threadgroup and 256 threads. No GPU is needed ("cuda" as the device, SMELT_STAGE_PTX). Free
 * *text with smelt_free. */
SMELT_API smelt_status smelt_kernel_show(smelt_kernel *kernel, const smelt_run_desc *desc, smelt_stage stage,
                                         char **text);
SMELT_API void smelt_free(void *memory);

/* ---- Whole .metal files --------------------------------------------------------------------- */

typedef struct smelt_library smelt_library;
typedef struct smelt_function smelt_function;

typedef struct smelt_library_desc {
    const char *path;    /* a .metal file or a package (the content decides), or … */
    const char *source;  /* … its text (then `path`, if given, is only the name in messages), or … */
    const void *package; /* … the bytes of a package, copied (`path` as above) … */
    size_t package_size; /* … and how many */
    /* For text only; a package has its own. */
    smelt_math_mode math;
    int metal_version; /* as in smelt_kernel_desc */
    const char *include_paths[SMELT_MAX_INCLUDE_PATHS];
    const char *const *macros; /* as in smelt_kernel_desc: what preprocessorMacros is in Metal */
    uint64_t reserved[7];
} smelt_library_desc;

/* Reads the text and finds its kernel functions; compiles nothing. Or reads a package: FORMAT if it is
 * damaged, has a newer format, or is from another build of smelt. A package holds machine code, which runs
 * unchecked: load only packages from a trusted source. */
SMELT_API smelt_status smelt_library_create(const smelt_library_desc *desc, smelt_library **library);
SMELT_API smelt_library *smelt_library_retain(smelt_library *library);
SMELT_API void smelt_library_release(smelt_library *library);

/* The host names of the kernel functions, in the order of the text: that of [[host_name]], otherwise the
 * function's name with its namespaces, as in "blas::axpy". */
SMELT_API int smelt_library_function_count(const smelt_library *library);
SMELT_API const char *smelt_library_function_name(const smelt_library *library, int index);

/* The value of one function constant, found by [[function_constant(index)]] or by its name. A value is
 * converted to the constant's type as by assignment; INVALID_ARGUMENT if an integer or bool cannot hold it.
 */
typedef struct smelt_constant {
    int index;
    smelt_dtype dtype; /* of the value, or of each component; SMELT_NO_DTYPE ends the list */
    union {
        double real;     /* for floats */
        int64_t integer; /* for integers and bool */
        double reals[4]; /* the same for vectors */
        int64_t integers[4];
    } value;
    const char *name; /* if given, identifies it instead of the index */
    int count;        /* components of a vector: 2, 3 or 4; 0 and 1: a scalar */
    uint64_t reserved[2];
} smelt_constant;

typedef struct smelt_function_desc {
    const char *name; /* host name, or its last part if that is unique; NULL: the only function */
    smelt_constant constants[SMELT_MAX_CONSTANTS];
    uint64_t reserved[8];
} smelt_function_desc;

/* One kernel function with its constants; compiled at its first run. INVALID_ARGUMENT lists the valid names.
 */
SMELT_API smelt_status smelt_library_function(smelt_library *library, const smelt_function_desc *desc,
                                              smelt_function **function);
SMELT_API smelt_function *smelt_function_retain(smelt_function *function);
SMELT_API void smelt_function_release(smelt_function *function);

/* The binding of one [[buffer(i)]]: an array, or `size` bytes copied at the call, or a tensor. An argument of
 * type `tensor` takes a tensor or an array with its rank and element type, whose last dimension is dense
 * (bytes for packed formats). An argument that is a pointer takes a tensor's data. */
typedef struct smelt_buffer {
    smelt_array *array;
    const void *bytes;
    size_t size;
    smelt_tensor *tensor;
    uint64_t reserved[1];
} smelt_buffer;

typedef struct smelt_dispatch_desc {
    smelt_buffer buffers[SMELT_MAX_BUFFERS];      /* by index; arrays for pointers must be row-contiguous */
    size_t threadgroup_memory[SMELT_MAX_BUFFERS]; /* bytes for [[threadgroup(i)]] */
    int64_t grid[3];                              /* threads (dispatchThreads), or … */
    int64_t groups[3];                            /* … threadgroups (dispatchThreadgroups) */
    int64_t threadgroup[3];                       /* threads per group; never clamped */
    const char *device;
    const char *profile;
    double timeout;
    smelt_run_info *info;
    smelt_stream *stream;
    const char *target;         /* for smelt_function_show_run, as in smelt_run_desc */
    smelt_interrupt *interrupt; /* ends the run when it is raised; may be NULL */
    const char *after;          /* for smelt_function_show_run, as in smelt_run_desc */
    /* SMELT_MAX_BUFFERS names of parameters, or NULL: where names[i] is not NULL, buffers[i] is bound to the
     * parameter of that name, not by its index. */
    const char *const *names;
    bool check; /* every access of memory is checked: <smelt/check.h> */
    /* On a CPU: the code does not test its accesses against the bounds of their arrays. An access that misses
     * its array may then change or read other memory of the process. Without effect if `check` is set. */
    bool unchecked;
    const char *also; /* what a checked run looks for besides, as in smelt_run_desc */
    uint64_t reserved[4];
} smelt_dispatch_desc;

/* Compiles if needed and runs. Arrays bound to writable buffers receive the results: host arrays before the
 * call returns. If all of them are on the GPU, the launch is enqueued, as by smelt_kernel_run. */
SMELT_API smelt_status smelt_function_run(smelt_function *function, const smelt_dispatch_desc *desc);

/* As smelt_kernel_wait. */
SMELT_API smelt_status smelt_function_wait(smelt_function *function, smelt_interrupt *interrupt);

/* A parameter of a function, bound by the caller. */
typedef struct smelt_parameter {
    const char *name;  /* lives as long as the function */
    int index;         /* of [[buffer(index)]] or [[threadgroup(index)]] */
    bool threadgroup;  /* threadgroup memory; else a buffer */
    bool pointer;      /* `T *`: any number of elements; else one, `T &` */
    bool writable;     /* not const: bytes cannot be bound to it */
    bool used;         /* the code needs it; others may stay unbound */
    size_t bytes;      /* of one element T */
    smelt_dtype dtype; /* of T, or of each component of a vector; SMELT_NO_DTYPE for structures */
    int components;    /* of a vector: 2, 3 or 4; 1: T is a scalar or structure */
    int rank;          /* of a `tensor`; 0: not a tensor */
    int element;       /* of a tensor: its elements' type (smelt_element_name in smelt/tensor.h); 0: none */
    int scales;        /* of a tensor: its scales' type; 0: none */
    uint64_t reserved[2];
} smelt_parameter;

/* Writes the parameters of a function, in the order of its text, to `parameters` (at most `capacity`); *count
 * receives their number. Compiles what smelt_function_run would compile for `desc`, of which sizes, device,
 * profile and time-out matter, with its errors for them. */
SMELT_API smelt_status smelt_function_parameters(smelt_function *function, const smelt_dispatch_desc *desc,
                                                 smelt_parameter *parameters, int capacity, int *count);

/* Whether arrays of `dtype` may be bound to the parameter: its own dtype, or that of a vector's components;
 * an integer of the same width; complex64 for float2; anything for a structure, and for char * and uchar *,
 * which are bytes; and uint8 for any type, which passes raw bytes (smelt_array_reinterpret). INVALID_ARGUMENT
 * explains a mismatch. smelt_function_run does not check this: it passes the bytes of any array. */
SMELT_API smelt_status smelt_parameter_check(const smelt_parameter *parameter, smelt_dtype dtype);

/* As smelt_kernel_show, for threadgroups of 256 threads. */
SMELT_API smelt_status smelt_function_show(smelt_function *function, const char *device, smelt_stage stage,
                                           char **text);
/* As smelt_kernel_show, for what smelt_function_run would run with `desc`. */
SMELT_API smelt_status smelt_function_show_run(smelt_function *function, const smelt_dispatch_desc *desc,
                                               smelt_stage stage, char **text);

/* ---- Packages: kernel functions compiled ahead of time, in one file ------------------------- */

/* The first bytes of a package. */
#define SMELT_PACKAGE_MAGIC "smeltlib"

#define SMELT_MAX_BUILD_TARGETS 8
#define SMELT_MAX_BUILD_THREADGROUPS 8

/* The result of building one entry. */
typedef struct smelt_build_report {
    const char *entry;   /* its host name */
    const char *targets; /* the targets of its code: "cpu,x86-64-v3" */
    double seconds;
    smelt_status status;
    const char *message; /* why it failed; or notes: constants to give at load, skipped threadgroups; or "" */
    int number, total;   /* it is the number-th of total, from 1 */
    int codes;           /* the number of its codes in the package, and … */
    uint64_t bytes;      /* … their bytes with its bitcode */
    uint64_t reserved[4];
} smelt_build_report;

/* Called per entry, in order, from any thread. The report is valid during the call. */
typedef void smelt_build_callback(const smelt_build_report *report, void *context);

typedef struct smelt_build_desc {
    const char *path; /* required: the file to write, FILE.smeltlib by custom */
    /* "cpu": this machine; "x86-64", "x86-64-v3", "x86-64-v4": any machine of that level; "sm_80", "sm_86",
     * "sm_87", "sm_89", "sm_90": NVIDIA GPUs of this compute capability or higher; "sm_90a": 9.0 only. No GPU
     * is needed. Ended by NULL; empty: "cpu". */
    const char *targets[SMELT_MAX_BUILD_TARGETS];
    const char *const *entries; /* names as in smelt_function_desc, ended by NULL; NULL: all */
    /* Values of function constants. An entry that reads a constant without a value is packaged without code;
     * the compiler library compiles it, without clang, when it is loaded with all values. */
    smelt_constant constants[SMELT_MAX_CONSTANTS];
    /* Threadgroup sizes to generate additional code for, which speeds up kernels with barriers. Ended by x =
     * 0. */
    int64_t threadgroups[SMELT_MAX_BUILD_THREADGROUPS][3];
    bool keep_going;              /* continue when an entry fails */
    int jobs;                     /* entries compiled at once; 0: one per CPU */
    smelt_build_callback *report; /* may be NULL */
    void *context;
    uint64_t reserved[8];
} smelt_build_desc;

/* Compiles a library's functions into a package. smelt_library_create loads it without clang and, if it holds
 * code for the machine or its GPU, without the compiler library. `library` must be from text. The same text,
 * options, compiler and machine give the same bytes. Without keep_going, the first failing entry ends the
 * build, and nothing is written. With it, the other entries are written (unless there are none), and the
 * first failure is returned. INVALID_ARGUMENT, UNSUPPORTED for a target; IO; NO_COMPILER; and the errors of
 * compiling entries. */
SMELT_API smelt_status smelt_library_build(smelt_library *library, const smelt_build_desc *desc);

/* A readable description of a package: its origin, its targets, and the parameters, function constants and
 * codes of each function. `name`: only this function; NULL: all. Free *text with smelt_free. INVALID_ARGUMENT
 * for a library from text. */
SMELT_API smelt_status smelt_library_describe(const smelt_library *library, const char *name, char **text);

/* ---- The compiler ----------------------------------------------------------------------------- */

/* The clang that compiles kernels: its path, and the first line of its version, "" if it cannot be run. Free
 * both with smelt_free; either may be NULL. NO_COMPILER names what was searched for and what to install. */
SMELT_API smelt_status smelt_clang_find(char **path, char **version);

/* What uses LLVM (smelt-cc1, or the compiler library), and the version of that LLVM ("19.1.7"), as above. */
SMELT_API smelt_status smelt_llvm_find(char **path, char **version);

/* ---- The disk cache ------------------------------------------------------------------------- */

/* The cache folder in use, or NULL if there is none, with the reason in smelt_error(). */
SMELT_API const char *smelt_cache_path(void);

/* Counts the cache's entries and bytes. */
SMELT_API smelt_status smelt_cache_usage(uint64_t *entries, uint64_t *bytes);

/* Removes every entry. Running processes are not affected. */
SMELT_API smelt_status smelt_cache_clear(void);

#ifdef __cplusplus
}
#endif
#endif
