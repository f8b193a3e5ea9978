/* Metal text that kernels of operations share. */
#ifndef SMELT_OPS_HELPERS_H
#define SMELT_OPS_HELPERS_H

/* Functions Metal's library lacks, or has otherwise. */
extern const char program_helpers[];

/* struct complex64. */
extern const char program_complex_helpers[];

#endif
