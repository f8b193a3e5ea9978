/* Bilinear samples, vectorised over the channels, of which there are 64: the ideal. Corners of points to come
 * are fetched ahead, as scattered reads of memory are all there is to it. */
#include "bench/hand/handwritten.h"
#include "bench/cpu/threads.h"

#include "bench/hand/vector.h"

#include <math.h>

#define CHANNELS 64
#define PIECE 128
#define AHEAD 4

struct job {
    const float *x, *points;
    float *out;
    int64_t batch, height, width, rows;
};

struct corners {
    const float *pixel[4];
    float weight[4]; /* 0 outside the image */
};

static inline struct corners corners_of(const struct job *job, int64_t point) {
    float width = (float)job->width, height = (float)job->height;
    float x = ((job->points[2 * point] + 1.0f) * width - 1.0f) * 0.5f;
    float y = ((job->points[2 * point + 1] + 1.0f) * height - 1.0f) * 0.5f;
    float left = floorf(x), top = floorf(y);
    const float *image = job->x + point / job->rows * job->height * job->width * CHANNELS;
    struct corners c;
    for (int i = 0; i < 4; i++) {
        float column = left + (float)(i & 1), row = top + (float)(i >> 1);
        bool inside = column >= 0 && column < width && row >= 0 && row < height;
        float across = i & 1 ? x - left : left + 1.0f - x, down = i >> 1 ? y - top : top + 1.0f - y;
        c.pixel[i] = image + (inside ? ((int64_t)row * job->width + (int64_t)column) * CHANNELS : 0);
        c.weight[i] = inside ? across * down : 0.0f;
    }
    return c;
}

static inline void fetch(const struct corners *c) {
    for (int i = 0; i < 4; i++)
        for (int line = 0; line < CHANNELS; line += 16)
            _mm_prefetch((const char *)(c->pixel[i] + line), _MM_HINT_T0);
}

static void piece(void *context, int64_t index) {
    const struct job *job = context;
    int64_t first = index * PIECE, past = first + PIECE, count = job->batch * job->rows;
    if (past > count) past = count;
    struct corners ring[AHEAD];
    for (int64_t p = first; p < past + AHEAD; p++) {
        struct corners *slot = &ring[p % AHEAD];
        if (p >= first + AHEAD) {
            float *out = job->out + (p - AHEAD) * CHANNELS;
            for (int v = 0; v < CHANNELS; v += LANES) {
                vector sum = vector_mul(vector_set(slot->weight[0]), vector_load(slot->pixel[0] + v));
                for (int i = 1; i < 4; i++)
                    sum = vector_fmadd(vector_set(slot->weight[i]), vector_load(slot->pixel[i] + v), sum);
                vector_store(out + v, sum);
            }
        }
        if (p >= past) continue;
        *slot = corners_of(job, p);
        fetch(slot);
    }
}

void BY_HAND(grid_sample)(const float *x, const float *points, float *out, int64_t batch, int64_t height,
                          int64_t width, int64_t rows) {
    struct job job = {x, points, out, batch, height, width, rows};
    team_run(piece, &job, (batch * rows + PIECE - 1) / PIECE);
}
