/* The part of the checker that checked code uses (compiler/check/ inserts the calls, src/check/ implements
 * them). All of them belong to the kernel thread that the calling worker runs.
 *
 * Shadow: one byte for each byte of memory, whose set bits are undefined. The form of its functions, and of
 * struct check_parameters, is LLVM's own: MemorySanitizer's for kernels (llvm/lib/Transforms/Instrumentation/
 * MemorySanitizer.cpp, "KMSAN"), whose calls the compiler renames. */
#ifndef SMELT_ABI_CHECK_H
#define SMELT_ABI_CHECK_H

#include <stdint.h>

/* A place in the user's source. Names are the kernel's own; NULL: none. */
struct check_site {
    const char *file;
    const char *name; /* of a variable */
    uint32_t line, column;
    uint32_t number; /* of the site in its kernel, from 1 */
};

/* The codes of all findings (docs/checking.md), which comments may ask to ignore. */
#define CHECK_CODES                                                \
    "SM001 SM002 SM003 SM004 SM005 SM006 SM007 SM008 SM009 SM010 " \
    "SM011 SM012 SM013 SM014 SM015 SM016 SM017 SM018 SM020 SM021 " \
    "SM022 SM023 SM024 SM025 SM026 SM027 "

/* What a checked run looks for only on request; bits. */
enum check_also {
    CHECK_ALSO_NOT_FINITE = 1,  /* NaN and infinity that come up in the kernel */
    CHECK_ALSO_UNSIGNED = 2,    /* unsigned numbers that wrap */
    CHECK_ALSO_DIVERGENT = 4,   /* simdgroup functions that some lanes miss, also where Metal defines that */
    CHECK_ALSO_ADVICE = 8,      /* what is not wrong, but slow or not meant */
    CHECK_ALSO_CONVERSIONS = 16 /* the compiler's warnings about these (cli/warnings.c): not a run's */
};

/* Where an access lies: */
enum check_space {
    CHECK_ANYWHERE,    /* a pointer that was loaded from memory or passed to a function */
    CHECK_DEVICE,      /* `base` is the address of a bound argument */
    CHECK_THREADGROUP, /* `base` is a variable's address, or an argument's if `extent` is 0 */
    CHECK_PRIVATE,     /* `base` is a variable's address */
    CHECK_CONSTANT     /* likewise, of a variable that is never written */
};

enum check_access { CHECK_READ, CHECK_WRITE, CHECK_ATOMIC, CHECK_ATOMIC_SUM /* of floats */ };

/* number: of a variable, the bytes of an element (0: not known), below CHECK_MOST_NUMBER; in CHECK_DEVICE,
 * the argument's [[buffer(index)]]. alignment: the address must be a multiple of 2 to this power. */
#define CHECK_FLAGS(space, access, number, alignment) \
    ((uint32_t)(space) | (uint32_t)(access) << 4 | (uint32_t)(number) << 8 | (uint32_t)(alignment) << 28)
#define CHECK_MOST_NUMBER (1u << 20)
#define CHECK_SPACE(flags) ((enum check_space)((flags) & 15))
#define CHECK_ACCESS(flags) ((enum check_access)((flags) >> 4 & 15))
#define CHECK_NUMBER(flags) ((flags) >> 8 & (CHECK_MOST_NUMBER - 1))
#define CHECK_ALIGNMENT(flags) ((flags) >> 28)

/* An access of `bytes` bytes that the thread is about to make. Returns the address to use instead: the same,
 * or scratch memory if the access is out of bounds. extent: bytes of the object at `base`; 0: not known. */
char *smelt_check_access(char *address, const char *base, uint64_t extent, uint64_t bytes, uint32_t flags,
                         const struct check_site *site);
/* A private array, out of LLVM's sight. Returns its address. */
char *smelt_check_object(char *address);
/* An operation whose result Metal leaves undefined. */
enum check_operation {
    CHECK_ADD,
    CHECK_SUBTRACT,
    CHECK_MULTIPLY,
    CHECK_SHIFT,
    CHECK_DIVIDE, /* or a remainder */
    CHECK_DIVIDE_UNSIGNED,
    CHECK_CONVERT, /* a float to an integer */
    CHECK_CONVERT_UNSIGNED,
    CHECK_ADD_UNSIGNED,
    CHECK_SUBTRACT_UNSIGNED,
    CHECK_MULTIPLY_UNSIGNED,
    CHECK_FINITE /* smelt_check_real: a float that is infinite or not a number, though its operands are not */
};

/* width: bits of the integer. */
#define CHECK_ARITHMETIC(operation, width) ((uint32_t)(operation) | (uint32_t)(width) << 8)
#define CHECK_OPERATION(what) ((enum check_operation)((what) & 255))
#define CHECK_WIDTH(what) ((what) >> 8)

/* The operation behind CHECK_FINITE, and how many operands the message can name. */
enum check_real {
    CHECK_REAL_ADD,
    CHECK_REAL_SUBTRACT,
    CHECK_REAL_MULTIPLY,
    CHECK_REAL_DIVIDE,
    CHECK_REAL_REMAINDER,
    CHECK_REAL_CONVERT,     /* of x */
    CHECK_REAL_CALL,        /* of a function that the site names, without operands that are known, … */
    CHECK_REAL_CALL_OF_ONE, /* … of x */
    CHECK_REAL_CALL_OF_TWO, /* … of x and y */
    CHECK_REAL_NAN = 128    /* a bit: the result is not a number */
};

/* The thread computes such a result. x and y: the operands, in the order of the source, extended with their
 * sign; of a shift both are the count, of a division x is the divisor; floats have the bits of a double. */
void smelt_check_arithmetic(uint64_t x, uint64_t y, uint32_t what, const struct check_site *site);
/* A float that comes up as infinite or NaN, as bits; x and y are its operands, what is enum check_real.
 * Returns it: from now on a value whose use is a finding, as of one that nobody has set. */
uint64_t smelt_check_real(uint64_t result, uint64_t x, uint64_t y, uint32_t what,
                          const struct check_site *site);
/* The thread's assertion fails, whose text is the site's name. */
void smelt_check_assertion(const struct check_site *site);
/* A comparison at the site is never true, for the reason that its name gives. */
void smelt_check_condition(const struct check_site *site);
/* A value that nobody has set, for a variable declared at the site. */
uint64_t smelt_check_undefined(const struct check_site *site);
/* A number that the thread is about to store in device memory; its shadow is that of the first parameter. */
void smelt_check_stored(uint64_t value, const struct check_site *site);
/* … at an address that may be anywhere: it counts if an argument lies there. */
void smelt_check_stored_at(uint64_t value, const struct check_site *site, const char *address);
/* … that it passes to other threads: undefined values that come from outside of an array count. */
void smelt_check_passed(uint64_t value);
/* The thread reaches a simdgroup function or a simdgroup's barrier; then what it passes to other lanes, whose
 * shadow goes with it. operand: its number, below CHECK_MOST_SHARED; only products of matrices have
 * several. */
void smelt_check_simdgroup(const struct check_site *site);
#define CHECK_MOST_SHARED 4
void smelt_check_shared(uint64_t value, uint32_t operand);
/* A branch or an address depends on an undefined value. */
void smelt_check_used(uint32_t origin, const struct check_site *site);
/* Before an atomic operation that depends on what is at the address, which smelt_check_access returned. */
void smelt_check_changed(char *address, uint64_t bytes, const struct check_site *site);
/* The thread reaches a barrier (mem_flags), of its simdgroup only; a fence. for_groups: it orders device
 * memory for other threadgroups, too. */
void smelt_check_barrier(uint32_t flags, uint32_t of_simdgroup, const struct check_site *site);
void smelt_check_fence(uint32_t flags, uint32_t for_groups);

/* ---- Shadow. */

/* The shadow of parameters and results of calls. */
struct check_parameters {
    uint64_t parameters[100], result[100], variable[100], variable_origins[100];
    uint64_t variable_bytes;
    uint32_t origins[200];
    uint32_t result_origin, unused;
};
struct check_parameters *smelt_check_parameters(void);

/* The shadow and the origins (one uint32_t for four bytes) of memory. */
struct check_shadow {
    char *shadow;
    uint32_t *origins;
};
struct check_shadow smelt_check_load_1(char *address);
struct check_shadow smelt_check_load_2(char *address);
struct check_shadow smelt_check_load_4(char *address);
struct check_shadow smelt_check_load_8(char *address);
struct check_shadow smelt_check_load_n(char *address, uint64_t bytes);
struct check_shadow smelt_check_store_1(char *address);
struct check_shadow smelt_check_store_2(char *address);
struct check_shadow smelt_check_store_4(char *address);
struct check_shadow smelt_check_store_8(char *address);
struct check_shadow smelt_check_store_n(char *address, uint64_t bytes);
void smelt_check_poison(char *address, uint64_t bytes, const char *name);
void smelt_check_unpoison(char *address, uint64_t bytes);
uint32_t smelt_check_chain(uint32_t origin);
void *smelt_check_copy(char *to, const char *from, uint64_t bytes);
void *smelt_check_move(char *to, const char *from, uint64_t bytes);
void *smelt_check_set(char *to, int32_t value, uint64_t bytes);

#endif
