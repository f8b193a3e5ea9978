/* malloc of smelt-cc1, and how its own code is mapped.
 *
 * clang and LLVM allocate a small object every 2,000 instructions, and glibc's malloc took a twentieth of a
 * small compile. Here each size class has a list of free blocks; if it is empty, a block is cut from a heap
 * that grows in steps of HEAP_STEP bytes. Blocks are neither split nor joined, and only the largest are
 * returned to the system, since the process compiles once. It has one thread, so there are no locks. */
#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

/* The heap grows in huge pages: a compile of a small kernel needs two of them; with small pages it would take
 * a thousand faults. */
#define HEAP_STEP ((size_t)16 << 20)
#define HUGE_PAGE ((size_t)2 << 20)

/* Every block begins with a header of eight bytes, which holds its class. The caller's memory follows it at a
 * multiple of 16 bytes. */
#define HEADER sizeof(uint64_t)
#define ALIGNMENT 16

/* Classes: in steps of 16 bytes up to SMALL, then four for each doubling. From LARGE on, a block is a mapping
 * of its own. */
#define SMALL ((size_t)1024)
#define SMALL_CLASSES (SMALL / ALIGNMENT)
#define LARGE ((size_t)8 << 20)
#define CLASSES (SMALL_CLASSES + 4 * 13)
#define LARGE_CLASS 255

struct free_block {
    struct free_block *next;
};

static struct free_block *lists[CLASSES];
static char *heap, *heap_end;

/* `size` includes the header. */
static unsigned class_of(size_t size) {
    if (size <= SMALL) return (unsigned)((size + ALIGNMENT - 1) / ALIGNMENT - 1);
    unsigned log = 63U - (unsigned)__builtin_clzll(size - 1);
    return (unsigned)SMALL_CLASSES + 4 * (log - 10) + (unsigned)((size - 1) >> (log - 2) & 3);
}

static size_t size_of(unsigned class) {
    if (class < SMALL_CLASSES) return (class + 1) * ALIGNMENT;
    unsigned step = class - (unsigned)SMALL_CLASSES;
    return (size_t)(4 + step % 4 + 1) << (8 + step / 4);
}

/* The header: the class in the low 8 bits, and above it the distance from the block's first usable byte to
 * the caller's memory, which is not 0 if that is aligned to more than 16 bytes. */
static uint64_t *header_of(void *memory) {
    return (uint64_t *)memory - 1;
}
static unsigned class_in(void *memory) {
    return *header_of(memory) & 255;
}
static size_t offset_in(void *memory) {
    return *header_of(memory) >> 8;
}

static void *map(size_t size) {
    void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes != MAP_FAILED) return bytes;
    errno = ENOMEM;
    return NULL;
}

/* A limit on addresses (ulimit -v) counts the step's unused rest as well. If it is low, too little may be
 * left for the stack to grow, and the process crashes without a message. */
static bool is_limited(void) {
    struct rlimit limit;
    return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur < 64 * HEAP_STEP;
}

/* Makes room for a block of `size` bytes. If memory is limited, or too short for a whole step, the heap grows
 * by what the block needs, in units of 64 KiB. */
static bool grow(size_t size) {
    char *bytes = is_limited() ? NULL : map(HEAP_STEP + HUGE_PAGE);
    if (bytes) {
        heap = bytes + (-(uintptr_t)bytes & (HUGE_PAGE - 1));
        heap_end = bytes + HEAP_STEP + HUGE_PAGE;
        (void)madvise(heap, HEAP_STEP, MADV_HUGEPAGE);
    } else {
        size_t step = (size + ALIGNMENT + 0xffff) & ~(size_t)0xffff;
        if (!(bytes = map(step))) return false;
        heap = bytes;
        heap_end = bytes + step;
    }
    heap += ALIGNMENT - HEADER;
    return true;
}

/* A mapping of its own, which begins with its size. */
static void *take_large(size_t size) {
    size_t whole = (size + ALIGNMENT + 4095) & ~(size_t)4095;
    if (whole < size) {
        errno = ENOMEM;
        return NULL;
    }
    size_t *bytes = map(whole);
    if (!bytes) return NULL;
    bytes[0] = whole;
    bytes[1] = LARGE_CLASS;
    return bytes + 2;
}

/* *fresh: the memory was never used, so it is zero. */
static void *take(size_t size, bool *fresh) {
    *fresh = true;
    if (size >= LARGE - HEADER) return take_large(size);
    unsigned class = class_of(size + HEADER);
    struct free_block *block = lists[class];
    if (block) {
        lists[class] = block->next;
        *fresh = false;
        *header_of(block) = class;
        return block;
    }
    size_t whole = size_of(class);
    if ((size_t)(heap_end - heap) < whole && !grow(whole)) return NULL;
    void *memory = heap + HEADER;
    heap += whole;
    *header_of(memory) = class;
    return memory;
}

static void give(void *memory) {
    unsigned class = class_in(memory);
    struct free_block *block = (void *)((char *)memory - offset_in(memory));
    if (class == LARGE_CLASS) {
        size_t *bytes = (size_t *)block - 2;
        (void)munmap(bytes, bytes[0]);
        return;
    }
    block->next = lists[class];
    lists[class] = block;
}

/* The number of bytes that the caller may use. */
static size_t room_of(void *memory) {
    unsigned class = class_in(memory);
    size_t offset = offset_in(memory);
    size_t *bytes = (size_t *)((char *)memory - offset) - 2;
    return (class == LARGE_CLASS ? bytes[0] - ALIGNMENT : size_of(class) - HEADER) - offset;
}

static void *take_aligned(size_t alignment, size_t size) {
    bool fresh;
    if (alignment <= ALIGNMENT) return take(size, &fresh);
    if (size > SIZE_MAX - alignment) {
        errno = ENOMEM;
        return NULL;
    }
    char *block = take(size + alignment, &fresh);
    if (!block) return NULL;
    unsigned class = class_in(block);
    char *memory = block + (-(uintptr_t)block & (alignment - 1));
    *header_of(memory) = class | (uint64_t)(memory - block) << 8;
    return memory;
}

/* ---- The functions of <stdlib.h> and <malloc.h>. */

void *malloc(size_t size) {
    bool fresh;
    return take(size, &fresh);
}

void free(void *memory) {
    if (memory) give(memory);
}

void *calloc(size_t count, size_t size) {
    bool fresh;
    size_t whole;
    if (__builtin_mul_overflow(count, size, &whole)) {
        errno = ENOMEM;
        return NULL;
    }
    void *memory = take(whole, &fresh);
    return memory && !fresh ? memset(memory, 0, whole) : memory;
}

void *realloc(void *memory, size_t size) {
    bool fresh;
    if (!memory) return take(size, &fresh);
    size_t room = room_of(memory);
    if (size <= room && size >= room / 4) return memory;
    void *other = take(size, &fresh);
    if (!other) return NULL;
    memcpy(other, memory, size < room ? size : room);
    give(memory);
    return other;
}

void *memalign(size_t alignment, size_t size) {
    return take_aligned(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    return take_aligned(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size) {
    void *taken = take_aligned(alignment, size);
    if (!taken) return ENOMEM;
    *memory = taken;
    return 0;
}

size_t malloc_usable_size(void *memory) {
    return memory ? room_of(memory) : 0;
}

/* LLVM's timers call these, but smelt-cc1 does not print them. */
struct mallinfo mallinfo(void) {
    return (struct mallinfo){0};
}

#if __GLIBC_PREREQ(2, 33)
struct mallinfo2 mallinfo2(void) {
    return (struct mallinfo2){0};
}
#endif

/* ---- Its own code. */

extern const char __executable_start[], etext[];

/* Requests huge pages for code that is read from the disk from now on, if the file system supports them. This
 * process, and each later one, then takes a sixth less time. Runs before all other constructors, whose code
 * would be read in small pages. */
__attribute__((constructor(101))) static void map_code(void) {
    uintptr_t start = (uintptr_t)__executable_start & ~(uintptr_t)(HUGE_PAGE - 1);
    uintptr_t end = ((uintptr_t)etext + 4095) & ~(uintptr_t)4095;
    (void)madvise((void *)start, end - start, MADV_HUGEPAGE);
}
