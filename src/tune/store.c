#include "tune/store.h"
#include "frontend/cache.h"
#include "tune/machine.h"
#include "tune/sqlite.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MILLISECONDS 10000

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS results (machine TEXT, function TEXT, key TEXT, config TEXT, "
    "milliseconds REAL, made REAL, PRIMARY KEY (machine, function, key))";

static atomic_uint generation;

unsigned store_generation(void) {
    return atomic_load(&generation);
}

struct store {
    const struct sqlite *sqlite;
    struct sqlite3 *database;
    char path[4352];
};

static bool find_path(char path[4352]) {
    const char *folder = cache_folder();
    return folder && snprintf(path, 4352, "%s/" STORE_FILE, folder) < 4352;
}

static void close_store(struct store *store) {
    if (store->database) (void)store->sqlite->close(store->database);
    store->database = NULL;
}

static smelt_status refuse(struct store *store) {
    smelt_status status = fail(SMELT_ERROR_IO, "tuning results: %s: %s", store->path,
                               store->database ? store->sqlite->errmsg(store->database) : "out of memory");
    close_store(store);
    return status;
}

/* A statement with text values bound; NULL ends them. */
static smelt_status prepare(struct store *store, const char *text, const char *const *values,
                            struct sqlite3_stmt **statement) {
    bool good = store->sqlite->prepare_v2(store->database, text, -1, statement, NULL) == SQLITE_OK;
    for (int i = 0; good && values[i]; i++)
        good = store->sqlite->bind_text(*statement, i + 1, values[i], -1, SQLITE_TRANSIENT) == SQLITE_OK;
    return good ? SMELT_OK : refuse(store);
}

/* Runs a statement without a result. */
static smelt_status run(struct store *store, struct sqlite3_stmt *statement) {
    bool good = store->sqlite->step(statement) == SQLITE_DONE;
    smelt_status status = SMELT_OK;
    if (!good)
        status = fail(SMELT_ERROR_IO, "tuning results: %s: %s", store->path,
                      store->sqlite->errmsg(store->database));
    (void)store->sqlite->finalize(statement);
    return status;
}

/* `create`: the file and its table; otherwise a missing file is not an error, and there is no database. */
static smelt_status open_store(struct store *store, bool create) {
    const char *reason;
    *store = (struct store){0};
    if (!find_path(store->path)) return SMELT_ERROR_IO;
    if (!create && access(store->path, F_OK) != 0) return SMELT_OK;
    store->sqlite = sqlite_open(&reason);
    if (!store->sqlite) return fail(SMELT_ERROR_IO, "tuning results: %s", reason);
    int flags = SQLITE_OPEN_READWRITE | (create ? SQLITE_OPEN_CREATE : 0);
    if (store->sqlite->open_v2(store->path, &store->database, flags, NULL) != SQLITE_OK) return refuse(store);
    (void)store->sqlite->busy_timeout(store->database, WAIT_MILLISECONDS);
    if (!create) return SMELT_OK;
    struct sqlite3_stmt *statement;
    TRY(prepare(store, schema, (const char *const[]){NULL}, &statement));
    smelt_status status = run(store, statement);
    if (status != SMELT_OK) close_store(store);
    return status;
}

static void warn(void) {
    static atomic_flag warned = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&warned))
        log_line(SMELT_LOG_WARNING, "%s; results are not kept", smelt_error());
}

static smelt_status find(struct store *store, const char *const *values, struct text *choice) {
    struct sqlite3_stmt *statement;
    TRY(prepare(store, "SELECT config FROM results WHERE machine = ? AND function = ? AND key = ?", values,
                &statement));
    int step = store->sqlite->step(statement);
    const unsigned char *found = step == SQLITE_ROW ? store->sqlite->column_text(statement, 0) : NULL;
    if (found) text_add(choice, (const char *)found);
    (void)store->sqlite->finalize(statement);
    return step == SQLITE_ROW || step == SQLITE_DONE ? SMELT_OK : refuse(store);
}

bool store_find(const char *machine, const char *name, const char *key, struct text *choice) {
    struct store store;
    size_t before = choice->length;
    smelt_status status = open_store(&store, false);
    if (status == SMELT_OK && store.database)
        status = find(&store, (const char *const[]){machine, name, key, NULL}, choice);
    if (status != SMELT_OK) warn();
    close_store(&store);
    return status == SMELT_OK && choice->length > before;
}

static smelt_status add(const char *const *values, double seconds) {
    struct store store;
    struct sqlite3_stmt *statement;
    TRY(open_store(&store, true));
    TRY(prepare(&store, "INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?, ?)", values, &statement));
    (void)store.sqlite->bind_double(statement, 5, 1e3 * seconds);
    (void)store.sqlite->bind_double(statement, 6, (double)time(NULL));
    smelt_status status = run(&store, statement);
    close_store(&store);
    return status;
}

void store_add(const char *machine, const char *name, const char *key, const char *choice, double seconds) {
    if (add((const char *const[]){machine, name, key, choice, NULL}, seconds) != SMELT_OK) warn();
    atomic_fetch_add(&generation, 1);
}

/* ---- The public list. */

#define MOST_MACHINES 24

struct machines {
    char fingerprint[MOST_MACHINES][HASH_HEX_LENGTH + 1];
    int count;
};

static void find_machines(struct machines *machines) {
    const char *name, *reason;
    for (int i = 0; machines->count < MOST_MACHINES && (name = smelt_device_name(i, &reason)); i++)
        if (!*reason && tune_machine(name, machines->fingerprint[machines->count]) == SMELT_OK)
            machines->count++;
}

static smelt_status list(struct store *store, void (*entry)(const smelt_tune_entry *entry, void *context),
                         void *context) {
    struct machines machines = {.count = 0};
    struct sqlite3_stmt *statement;
    int step;
    find_machines(&machines);
    TRY(prepare(store,
                "SELECT machine, function, key, config, milliseconds FROM results ORDER BY function, key, "
                "machine",
                (const char *const[]){NULL}, &statement));
    while ((step = store->sqlite->step(statement)) == SQLITE_ROW) {
        const char *texts[4];
        for (int i = 0; i < 4; i++) {
            texts[i] = (const char *)store->sqlite->column_text(statement, i);
            if (!texts[i]) texts[i] = "";
        }
        smelt_tune_entry one = {.machine = texts[0],
                                .name = texts[1],
                                .key = texts[2],
                                .choice = texts[3],
                                .seconds = 1e-3 * store->sqlite->column_double(statement, 4)};
        for (int i = 0; i < machines.count; i++)
            one.here |= strcmp(machines.fingerprint[i], one.machine) == 0;
        entry(&one, context);
    }
    (void)store->sqlite->finalize(statement);
    return step == SQLITE_DONE ? SMELT_OK : refuse(store);
}

smelt_status smelt_tune_list(void (*entry)(const smelt_tune_entry *entry, void *context), void *context) {
    struct store store;
    if (!entry) return fail(SMELT_ERROR_INVALID_ARGUMENT, "tuning results: entry is NULL");
    TRY(open_store(&store, false));
    smelt_status status = store.database ? list(&store, entry, context) : SMELT_OK;
    close_store(&store);
    return status;
}

static smelt_status forget(struct store *store) {
    struct sqlite3_stmt *statement;
    TRY(prepare(store, "DELETE FROM results", (const char *const[]){NULL}, &statement));
    return run(store, statement);
}

smelt_status smelt_tune_forget(void) {
    struct store store;
    smelt_status status = open_store(&store, false);
    if (status == SMELT_OK && store.database) status = forget(&store);
    close_store(&store);
    atomic_fetch_add(&generation, 1);
    if (status == SMELT_OK || !*store.path) return status;
    /* What cannot be emptied is damaged. */
    if (unlink(store.path) == 0 || errno == ENOENT) return SMELT_OK;
    return fail(SMELT_ERROR_IO, "tuning results: %s cannot be removed: %s", store.path, strerror(errno));
}
