/* Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11): a function from a
 * 128-bit counter and a 64-bit key to 128 random bits, so that any element can be computed without those
 * before it. */
#ifndef SMELT_ARRAY_PHILOX_H
#define SMELT_ARRAY_PHILOX_H

#include <stdint.h>

struct philox {
    uint32_t word[4];
};

static inline struct philox philox4x32(struct philox counter, uint32_t key0, uint32_t key1) {
    struct philox x = counter;
    for (int round = 0; round < 10; round++) {
        uint64_t product0 = UINT64_C(0xD2511F53) * x.word[0];
        uint64_t product1 = UINT64_C(0xCD9E8D57) * x.word[2];
        x = (struct philox){{(uint32_t)(product1 >> 32) ^ x.word[1] ^ key0, (uint32_t)product1,
                             (uint32_t)(product0 >> 32) ^ x.word[3] ^ key1, (uint32_t)product0}};
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return x;
}

#endif
