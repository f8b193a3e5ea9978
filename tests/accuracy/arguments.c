#include "arguments.h"

#include "../prelude/support.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(table) (int64_t)(sizeof(table) / sizeof(table)[0])

static const double special[] = {0.0,
                                 -0.0,
                                 1,
                                 -1,
                                 2,
                                 -2,
                                 0.5,
                                 -0.5,
                                 1.5,
                                 -1.5,
                                 2.5,
                                 3,
                                 -3,
                                 0x1p-149,
                                 -0x1p-149,
                                 0x1p-126,
                                 -0x1p-126,
                                 0x1.fffffep127,
                                 -0x1.fffffep127,
                                 INFINITY,
                                 -INFINITY,
                                 NAN,
                                 0x1p24,
                                 -0x1.fffffep23,
                                 0x1p17,
                                 100.5,
                                 -7};

struct sweep sweep_of(smelt_dtype dtype, int arguments, enum density density) {
    struct sweep sweep = {dtype, arguments, .chunks = 1, .compared = 1, .step = density == FULL ? 1 : 16};
    bool single = dtype == SMELT_FLOAT32;
    if (arguments == 1) {
        sweep.size = !single ? 1 << 16 : density ? 1 << 20 : 1 << 17;
        if (single && density) sweep.chunks = 4 + (1 << 12) / sweep.step, sweep.compared = 4;
    } else {
        sweep.size = density ? 1 << 20 : 1 << 16;
        if (density) sweep.chunks = single ? 64 : 4, sweep.compared = 2;
    }
    return sweep;
}

struct arguments arguments_new(const struct sweep *sweep) {
    struct arguments arguments = {0};
    for (int i = 0; i < sweep->arguments; i++) {
        arguments.typed[i] = calloc((size_t)sweep->size, 4);
        arguments.wide[i] = calloc((size_t)sweep->size, sizeof(double));
        if (!arguments.typed[i] || !arguments.wide[i]) abort();
    }
    return arguments;
}
void arguments_free(struct arguments *arguments) {
    for (int i = 0; i < 3; i++) free(arguments->typed[i]), free(arguments->wide[i]);
}

/* The same numbers on every machine, in any order of chunks (Steele, Lea, Flood: splitmix). */
static uint64_t mixed(uint64_t n) {
    n *= 0x9e3779b97f4a7c15;
    n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9;
    n = (n ^ n >> 27) * 0x94d049bb133111eb;
    return n ^ n >> 31;
}
static uint64_t state;
static uint64_t draw(void) {
    return mixed(++state);
}
static double between(double low, double high) {
    return low + (high - low) * (double)(draw() >> 11) * 0x1p-53;
}

/* One float per `step` bit patterns. */
static void fill_stretch(float *x, int64_t count, uint32_t first, int step) {
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits = first + (uint32_t)i * (uint32_t)step;
        if (step > 1) bits += (uint32_t)(draw() % (uint64_t)step);
        memcpy(&x[i], &bits, 4);
    }
}

/* Special values first. Half of the rest is one float per stretch of equally many bit patterns; the other
 * half is from the ranges where functions change quickly. All in random order. */
static void fill_floats(float *x, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        if (i < COUNT(special)) {
            x[i] = (float)special[i];
        } else if (i % 2) {
            uint64_t stretch = 0x200000000u / (uint64_t)count;
            uint32_t bits = (uint32_t)((uint64_t)(i / 2) * stretch + draw() % stretch);
            memcpy(&x[i], &bits, 4);
        } else {
            static const double ranges[][2] = {{-1, 1},     {0.5, 2},      {-110, 110}, {-10, 10},
                                               {-0.1, 0.1}, {-4000, 4000}, {0.9, 1.1}};
            const double *range = ranges[i / 2 % COUNT(ranges)];
            x[i] = (float)between(range[0], range[1]);
        }
    }
    for (int64_t i = COUNT(special); i < count; i++) {
        int64_t other = i + (int64_t)(draw() % (uint64_t)(count - i));
        float keep = x[i];
        x[i] = x[other], x[other] = keep;
    }
}

/* All pairs, or triples, of special values; random bit patterns; ordinary numbers; numbers near each other; a
 * number, and an exponent that takes it anywhere in the type's range. */
static double tuple_value(int kind, int input, double first) {
    switch (kind) {
    case 0:
        return between(-8, 8);
    case 1:
        return input == 1 ? between(-40, 40) : fabs(between(0, 4));
    case 2:
        return input == 0 ? between(-2, 2) : first * (1 + between(-0.01, 0.01));
    case 3:
        return input == 0                 ? exp2(between(-126, 127))
               : input == 1 && first != 1 ? between(-152, 130) / log2(first)
                                          : between(-1, 1);
    default:
        return copysign(exp2(between(-20, 20)), between(-1, 1));
    }
}
static void fill_tuples(const struct arguments *arguments, const struct sweep *sweep, int chunk) {
    int64_t crossed = chunk == sweep->chunks - 1 ? COUNT(special) * COUNT(special) : 0;
    if (sweep->arguments == 3) crossed *= COUNT(special);
    for (int64_t i = 0; i < sweep->size; i++)
        for (int input = 0; input < sweep->arguments; input++) {
            int64_t place = i;
            for (int k = 0; k < input; k++) place /= COUNT(special);
            int kind = (int)(i % 6);
            if (i < crossed) {
                store(sweep->dtype, arguments->typed[input], i, special[place % COUNT(special)]);
            } else if (kind == 5) {
                uint64_t bits = draw() >> 20;
                size_t size = type_size(sweep->dtype);
                memcpy((char *)arguments->typed[input] + (size_t)i * size, &bits, size);
            } else {
                double first = input ? number(sweep->dtype, arguments->typed[0], i) : 0;
                store(sweep->dtype, arguments->typed[input], i, tuple_value(kind, input, first));
            }
        }
}

void arguments_fill(struct arguments *arguments, const struct sweep *sweep, int chunk) {
    state = (uint64_t)(chunk + 1) << 40;
    if (sweep->arguments > 1)
        fill_tuples(arguments, sweep, chunk);
    else if (sweep->dtype != SMELT_FLOAT32) /* every number; an odd factor spreads them */
        for (int64_t i = 0; i < sweep->size; i++)
            ((uint16_t *)arguments->typed[0])[i] = (uint16_t)(i * 40503);
    else if (chunk < sweep->chunks - sweep->compared)
        fill_stretch(arguments->typed[0], sweep->size,
                     (uint32_t)chunk * (uint32_t)sweep->size * (uint32_t)sweep->step, sweep->step);
    else
        fill_floats(arguments->typed[0], sweep->size);
    for (int input = 0; input < sweep->arguments; input++) {
        double *wide = arguments->wide[input];
        const float *single = arguments->typed[input];
        if (sweep->dtype == SMELT_FLOAT32)
            for (int64_t i = 0; i < sweep->size; i++) wide[i] = single[i];
        else
            for (int64_t i = 0; i < sweep->size; i++) wide[i] = number(sweep->dtype, single, i);
    }
}
