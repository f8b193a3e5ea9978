#include "device/cpu/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define WITH_TSAN 1
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define WITH_TSAN 1
#endif
#endif

#if WITH_ASAN
void __sanitizer_start_switch_fiber(void **save, const void *bottom, size_t size);
void __sanitizer_finish_switch_fiber(void *save, const void **bottom, size_t *size);
void __asan_unpoison_memory_region(const volatile void *address, size_t size);
#endif
#if WITH_TSAN
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
#endif

smelt_status fibers_create(struct fiber *fibers, int count, size_t stack_bytes) {
    size_t step = stack_bytes + FIBER_GUARD_BYTES, bytes = step * (size_t)count + FIBER_GUARD_BYTES;
    char *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return fail_out_of_memory(bytes);
    bool guarded = true;
    for (int i = 0; i <= count && guarded; i++)
        guarded = mprotect(memory + step * (size_t)i, FIBER_GUARD_BYTES, PROT_NONE) == 0;
    if (!guarded) {
        munmap(memory, bytes);
        return fail(SMELT_ERROR_OUT_OF_MEMORY, "the guard pages of %d thread stacks could not be set up",
                    count);
    }
    for (int i = 0; i < count; i++) {
        fibers[i] = (struct fiber){.stack = memory + step * (size_t)i + FIBER_GUARD_BYTES,
                                   .stack_bytes = stack_bytes};
#if WITH_TSAN
        fibers[i].sanitizer = __tsan_create_fiber(0);
#endif
    }
    return SMELT_OK;
}

void fibers_destroy(struct fiber *fibers, int count) {
    if (!count) return;
#if WITH_TSAN
    for (int i = 0; i < count; i++) __tsan_destroy_fiber(fibers[i].sanitizer);
#endif
    munmap(fibers[0].stack - FIBER_GUARD_BYTES,
           (fibers[0].stack_bytes + FIBER_GUARD_BYTES) * (size_t)count + FIBER_GUARD_BYTES);
}

void fiber_prepare(struct fiber *fiber, void (*main)(void *), void *argument, int stagger) {
    char *top = fiber->stack + fiber->stack_bytes - 64 * (size_t)(stagger & 31);
#if WITH_ASAN
    /* Its former work may have left the edges of its variables poisoned. */
    __asan_unpoison_memory_region(fiber->stack, fiber->stack_bytes);
#endif
    fiber->stack_pointer = arch_prepare_stack(top, main, argument);
    fiber->fake_stack = NULL;
}

#if WITH_ASAN
/* Completes a switch to a fiber. Where the home's own stack lies is told by the switches that come from it.
 */
static void arrive(void *fake_stack, struct fiber_home *home) {
    const void *bottom;
    size_t size;
    __sanitizer_finish_switch_fiber(fake_stack, &bottom, &size);
    if (!home->left) return;
    home->stack_bottom = bottom;
    home->stack_size = size;
    home->left = false;
}
#endif

void fiber_enter(struct fiber *fiber, struct fiber_home *home) {
#if WITH_TSAN
    home->sanitizer = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(fiber->sanitizer, 0);
#endif
#if WITH_ASAN
    home->left = true;
    __sanitizer_start_switch_fiber(&home->fake_stack, fiber->stack, fiber->stack_bytes);
#endif
    arch_switch(&home->stack_pointer, fiber->stack_pointer);
#if WITH_ASAN
    __sanitizer_finish_switch_fiber(home->fake_stack, NULL, NULL);
#endif
}

/* Not counted: a fiber may leave here for good. */
NOT_COUNTED void fiber_leave(struct fiber *fiber, struct fiber_home *home) {
#if WITH_TSAN
    __tsan_switch_to_fiber(home->sanitizer, 0);
#endif
#if WITH_ASAN
    __sanitizer_start_switch_fiber(&fiber->fake_stack, home->stack_bottom, home->stack_size);
#endif
    arch_switch(&fiber->stack_pointer, home->stack_pointer);
#if WITH_ASAN
    arrive(fiber->fake_stack, home);
#endif
}

NOT_COUNTED void fiber_switch(struct fiber *from, struct fiber *to, struct fiber_home *home) {
#if WITH_TSAN
    __tsan_switch_to_fiber(to->sanitizer, 0);
#endif
#if WITH_ASAN
    __sanitizer_start_switch_fiber(&from->fake_stack, to->stack, to->stack_bytes);
#endif
    arch_switch(&from->stack_pointer, to->stack_pointer);
#if WITH_ASAN
    arrive(from->fake_stack, home);
#endif
    (void)home;
}

void fiber_started(struct fiber_home *home) {
#if WITH_ASAN
    arrive(NULL, home);
#endif
    (void)home;
}

/* ThreadSanitizer counts the functions entered on each fiber: one that enters on a fiber and leaves at home
 * is not to be counted. */
NOT_COUNTED void *fiber_escape(struct fiber_home *home) {
#if WITH_TSAN
    __tsan_switch_to_fiber(home->sanitizer, 0);
#endif
#if WITH_ASAN
    __sanitizer_start_switch_fiber(NULL, home->stack_bottom, home->stack_size);
#endif
    return home->stack_pointer;
}
