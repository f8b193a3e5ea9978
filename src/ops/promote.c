/* The common dtype of several arrays. */
#include "array/dtype.h"
#include "ops/operation.h"

enum rank { RANK_BOOL, RANK_INTEGER, RANK_FLOAT, RANK_COMPLEX };

static enum rank rank_of(smelt_dtype dtype) {
    if (dtype == SMELT_BOOL) return RANK_BOOL;
    if (dtype_is_integer(dtype)) return RANK_INTEGER;
    return dtype == SMELT_COMPLEX64 ? RANK_COMPLEX : RANK_FLOAT;
}

bool dtype_is_inexact(smelt_dtype dtype) {
    return rank_of(dtype) >= RANK_FLOAT;
}

static smelt_dtype signed_of(size_t bytes) {
    return bytes == 1 ? SMELT_INT8 : bytes == 2 ? SMELT_INT16 : bytes == 4 ? SMELT_INT32 : SMELT_INT64;
}

static smelt_dtype join_integers(smelt_dtype a, smelt_dtype b) {
    size_t a_bytes = smelt_dtype_bytes(a), b_bytes = smelt_dtype_bytes(b);
    if (dtype_is_signed(a) == dtype_is_signed(b)) return a_bytes >= b_bytes ? a : b;
    size_t unsigned_bytes = dtype_is_signed(a) ? b_bytes : a_bytes;
    size_t signed_bytes = dtype_is_signed(a) ? a_bytes : b_bytes;
    if (signed_bytes > unsigned_bytes) return signed_of(signed_bytes);
    return unsigned_bytes < 8 ? signed_of(2 * unsigned_bytes) : SMELT_FLOAT32;
}

static smelt_dtype join(smelt_dtype a, smelt_dtype b) {
    enum rank a_rank = rank_of(a), b_rank = rank_of(b);
    if (a == b) return a;
    if (a_rank != b_rank) return a_rank > b_rank ? a : b;
    if (a_rank == RANK_INTEGER) return join_integers(a, b);
    return a == SMELT_FLOAT64 || b == SMELT_FLOAT64 ? SMELT_FLOAT64 : SMELT_FLOAT32;
}

smelt_status smelt_result_dtype(const smelt_dtype *dtypes, uint64_t weak, int count, smelt_dtype *dtype) {
    if (!dtypes || !dtype || count < 1)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "result dtype: %s",
                    count < 1 ? "at least one dtype is needed" : "an argument is NULL");
    smelt_dtype strong = SMELT_NO_DTYPE, soft = SMELT_NO_DTYPE;
    for (int i = 0; i < count; i++) {
        if (!smelt_dtype_bytes(dtypes[i]))
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "result dtype: dtype %d is not one of smelt_dtype",
                        (int)dtypes[i]);
        smelt_dtype *into = weak >> i & 1 ? &soft : &strong;
        *into = *into == SMELT_NO_DTYPE ? dtypes[i] : join(*into, dtypes[i]);
    }
    if (strong != SMELT_NO_DTYPE && (soft == SMELT_NO_DTYPE || rank_of(soft) <= rank_of(strong)))
        *dtype = strong;
    else if (rank_of(soft) == RANK_COMPLEX)
        *dtype = soft;
    else
        *dtype = rank_of(soft) == RANK_FLOAT     ? SMELT_FLOAT32
                 : rank_of(soft) == RANK_INTEGER ? SMELT_INT32
                                                 : SMELT_BOOL;
    return SMELT_OK;
}

smelt_status call_dtype(const struct call *call, int first, int count, smelt_dtype *dtype) {
    smelt_dtype dtypes[SMELT_MAX_ARGUMENTS];
    for (int i = 0; i < count; i++) dtypes[i] = call->inputs[first + i]->dtype;
    return smelt_result_dtype(dtypes, call->desc->weak >> first, count, dtype);
}

bool call_has_float64(const struct call *call) {
    bool found = false;
    for (int i = 0; i < call->count; i++) {
        const smelt_array *input = call->inputs[i];
        bool number = call->desc->weak >> i & 1 && input->size == 1 && !input->memory->space;
        found |= input->dtype == SMELT_FLOAT64 && !number;
    }
    return found;
}
