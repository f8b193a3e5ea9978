/* Exponentials of what attention's masks hide: -INFINITY and large negative numbers, whose result is exactly
 * 0. No product may underflow on the way there: a CPU takes 100 times as long for one that does. */
#include "support.h"

#include "../device.h"

#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 64 /* more than a vector holds */

static const char *const calls[] = {"exp(a)", "exp2(a)", "exp10(a)", "(float)exp(bfloat(a))",
                                    "1 / (1 + exp(-a)) == 1 ? 0.0f : 1.0f"};

/* Whether a product underflowed in exp of COUNT times x. One thread runs kernels: this one. */
static bool underflows(const char *call, float x, bool is_zero) {
    float numbers[COUNT];
    char body[200];
    for (int i = 0; i < COUNT; i++) numbers[i] = strstr(call, "-a") ? -x : x;
    snprintf(body, sizeof body, "uint i = thread_position_in_grid.x; float a = x_values[i]; out[i] = %s;",
             call);
    feclearexcept(FE_ALL_EXCEPT);
    smelt_array *out = run_body(&(struct run){.body = body,
                                              .dtype = SMELT_FLOAT32,
                                              .x = numbers,
                                              .count = COUNT,
                                              .threads = COUNT,
                                              .outputs = COUNT});
    bool found = fetestexcept(FE_UNDERFLOW);
    if (!out) return false;
    for (int i = 0; i < COUNT && is_zero; i++)
        if (((const float *)smelt_array_data(out))[i] != 0)
            failed("%s of %g is %g; expected 0", call, (double)x,
                   (double)((const float *)smelt_array_data(out))[i]);
    smelt_array_release(out);
    return found;
}

int main(void) {
    static const float hidden[] = {-INFINITY, -3e38f, -1e9f, -65504, -1e4f, -255};
    setenv("SMELT_THREADS", "1", 1);
    if (strcmp(test_device(), "cpu") != 0) return 0;
    if (!underflows("exp(a)", -95, false)) failed("exp(-95) does not underflow, so the test sees nothing");
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++)
        for (size_t h = 0; h < sizeof hidden / sizeof *hidden; h++)
            if (underflows(calls[c], hidden[h], true))
                failed("%s of %g: a product underflows", calls[c], (double)hidden[h]);
    if (failures) fprintf(stderr, "%d checks failed\n", failures);
    return failures != 0;
}
