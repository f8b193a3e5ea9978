// Flags: sixteen floats in which a kernel reports its progress and errors (smelt/guard.h has the slots). `dbg` is the
// output itself, an ordinary one or an atomic one. One thread should write, but any may call dbg_fail or dbg_finite: which of
// several failures is kept is then open.
enum dbg_slot {
    DBG_START = 0, DBG_ROWS = 1, DBG_COLUMNS = 2, DBG_RANK = 3, DBG_GROUP = 5, DBG_THREADS = 6, DBG_WORK = 7,
    DBG_VALUES = 8, DBG_ITERATIONS = 12, DBG_ERROR = 13, DBG_ERROR_VALUE = 14, DBG_SUCCESS = 15, DBG_COUNT = 16
};
enum dbg_error { DBG_TOO_LARGE = 1, DBG_TOO_MUCH_WORK = 2, DBG_TOO_MANY_ITERATIONS = 3, DBG_UNSTABLE = 4 };

inline void dbg_set(device float* dbg, uint slot, float value) { dbg[slot] = value; }
inline void dbg_set(device metal::atomic<float>* dbg, uint slot, float value) {
    metal::atomic_store_explicit(&dbg[slot], value, metal::memory_order_relaxed);
}
inline float dbg_get(device float* dbg, uint slot) { return dbg[slot]; }
inline float dbg_get(device metal::atomic<float>* dbg, uint slot) {
    return metal::atomic_load_explicit(&dbg[slot], metal::memory_order_relaxed);
}

// Clears all slots. Without it, run the kernel with init_value=0.
template <typename P> inline void dbg_clear(P dbg) {
    for (uint slot = 0; slot < DBG_COUNT; slot++) dbg_set(dbg, slot, 0.0f);
}
template <typename P> inline void dbg_dims(P dbg, uint m, uint n) {
    dbg_set(dbg, DBG_ROWS, float(m));
    dbg_set(dbg, DBG_COLUMNS, float(n));
    dbg_set(dbg, DBG_RANK, float(metal::min(m, n)));
}
template <typename P> inline void dbg_threads(P dbg, uint group, uint threads, uint work) {
    dbg_set(dbg, DBG_GROUP, float(group));
    dbg_set(dbg, DBG_THREADS, float(threads));
    dbg_set(dbg, DBG_WORK, float(work));
}
template <typename P> inline void dbg_start(P dbg) { dbg_set(dbg, DBG_START, 1.0f); }
// index: 0 to 3; others are ignored.
template <typename P> inline void dbg_value(P dbg, uint index, float value) {
    if (index < 4) dbg_set(dbg, DBG_VALUES + index, value);
}
template <typename P> inline void dbg_iterations(P dbg, uint count) { dbg_set(dbg, DBG_ITERATIONS, float(count)); }
template <typename P> inline void dbg_fail(P dbg, uint code, float value) {
    dbg_set(dbg, DBG_ERROR_VALUE, value);
    dbg_set(dbg, DBG_ERROR, float(code));
}
// Whether the matrix and the work are within the limits; else the flags say which is not.
template <typename P> inline bool dbg_preflight(P dbg, uint m, uint n, uint max_dim, uint work, uint max_work) {
    dbg_dims(dbg, m, n);
    if (metal::max(m, n) > max_dim) return dbg_fail(dbg, DBG_TOO_LARGE, float(metal::max(m, n))), false;
    if (work > max_work) return dbg_fail(dbg, DBG_TOO_MUCH_WORK, float(work)), false;
    return dbg_start(dbg), true;
}
// Whether the value is finite; else the flags hold `code` and the value.
template <typename P> inline bool dbg_finite(P dbg, float value, uint code = DBG_UNSTABLE) {
    if ((as_type<uint>(value) & 0x7f800000u) != 0x7f800000u) return true;
    return dbg_fail(dbg, code, value), false;
}
// Sets the success flag, unless an error code is set.
template <typename P> inline void dbg_succeed(P dbg) {
    if (dbg_get(dbg, DBG_ERROR) == 0.0f) dbg_set(dbg, DBG_SUCCESS, 1.0f);
}
