/* GNU's OpenMP keeps its threads spinning for milliseconds after a parallel region, in case another follows.
 * PyTorch's operators on CPUs are such regions. Our own threads, if they run between two of them, share CPUs
 * with the spinning ones: with attention by smelt, a small vision transformer took 8 % longer on two CPUs
 * than PyTorch alone (bench/python/models.py vit at real-time priority). As a region itself, a job has the
 * CPUs for itself, and its threads are awake. */
#include "device/cpu/team.h"
#include "base/setting.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
    void (*parallel)(void (*work)(void *), void *argument, unsigned threads, unsigned flags);
    int (*most_threads)(void);
    int (*in_parallel)(void);
} openmp;

static atomic_bool forked;

static int first_count(struct dl_phdr_info *info, size_t size, void *to) {
    (void)size;
    *(unsigned long long *)to = info->dlpi_adds;
    return 1; /* each library has the same count */
}

static void *function(void *library, const char *name) {
    return library ? dlsym(library, name) : NULL;
}

/* Requires the pool's lock. Looks again only after a library was loaded. */
static bool find(void) {
    static unsigned long long looked;
    unsigned long long loaded = 0;
    if (openmp.parallel) return true;
    dl_iterate_phdr(first_count, &loaded);
    if (loaded == looked) return false;
    looked = loaded;
    void *library = dlopen("libgomp.so.1", RTLD_LAZY | RTLD_NOLOAD);
    void *parallel = function(library, "GOMP_parallel"), *most = function(library, "omp_get_max_threads"),
         *in_parallel = function(library, "omp_in_parallel");
    if (!parallel || !most || !in_parallel) return false;
    *(void **)&openmp.most_threads = most;
    *(void **)&openmp.in_parallel = in_parallel;
    *(void **)&openmp.parallel = parallel;
    return true;
}

/* OpenMP has a set of threads for each thread that has regions. Of other threads, we do not know that they
 * have any. */
static bool is_main_thread(void) {
    return syscall(SYS_gettid) == getpid();
}

bool pool_team_run(void (*work)(void *), int threads) {
    static struct setting setting = {"SMELT_OPENMP", {"1", "0"}, ATOMIC_FLAG_INIT};
    if (atomic_load(&forked) || !is_main_thread() || !find() || setting_choice(&setting) != 0) return false;
    /* For another number, OpenMP would end or start threads here, and again in the program's next region. */
    if (openmp.in_parallel() || openmp.most_threads() != threads) return false;
    openmp.parallel(work, NULL, (unsigned)threads, 0);
    return true;
}

void pool_team_after_fork(void) {
    atomic_store(&forked, true);
}
