/* Metal text that kernels of operations share. */
#ifndef SMELT_OPS_HELPERS_H
#define SMELT_OPS_HELPERS_H

/* Functions Metal's library lacks, or has otherwise. */
extern const char helpers_text[];

/* struct complex64. */
extern const char helpers_complex_text[];

#endif
