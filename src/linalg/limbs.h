/* Factorisations and dot products whose sums are kept in integers of eight 16-bit limbs
 * (kernels/linalg/limbs.metal). */
#ifndef SMELT_LINALG_LIMBS_H
#define SMELT_LINALG_LIMBS_H

#include "linalg/health.h"

/* As dense_run, with the extended kernels; `context` is that of method->repair. Results (batch, …) are
 * float32, or float64 if a is. q may be NULL. */
smelt_status limbs_cholesky(struct dense *d, const struct dense_method *method, void *context,
                            smelt_array *l);
smelt_status limbs_qr(struct dense *d, const struct dense_method *method, void *context, double tolerance,
                      smelt_array *q, smelt_array *r);

#endif
