/* The worker of a thread: created at its first launch, freed with the thread, together with all that faults,
 * interrupts and engines keep for it. */
#include "device/cpu/gang.h"
#include "device/cpu/interrupt.h"
#include "device/cpu/scalar.h"

#include <stdlib.h>

static pthread_key_t worker_key;
static pthread_once_t worker_once = PTHREAD_ONCE_INIT;

static void worker_destroy(void *pointer) {
    struct worker *worker = pointer;
    interruption_forget(worker);
    scalar_state_free(worker->scalar);
    scalar_state_free(worker->checked);
    gang_state_free(worker->gangs);
    free(worker->threadgroup_memory);
    free(worker->tile_memory);
    free(worker->held_tiles);
    free(worker);
    worker_this = NULL;
    fault_release_thread();
}

static void make_key(void) {
    (void)pthread_key_create(&worker_key, worker_destroy);
}

smelt_status worker_of_this_thread(struct worker **out) {
    if (!worker_this) {
        pthread_once(&worker_once, make_key);
        struct worker *worker = calloc(1, sizeof *worker);
        if (!worker || pthread_setspecific(worker_key, worker) != 0) {
            free(worker);
            return fail_out_of_memory(sizeof *worker);
        }
        worker_this = worker;
        fault_prepare_thread();
        interruption_know(worker);
    }
    *out = worker_this;
    return SMELT_OK;
}
