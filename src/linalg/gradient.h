/* Derivatives: each records a call on the thread's tapes, with its vector-Jacobian product. */
#ifndef SMELT_LINALG_GRADIENT_H
#define SMELT_LINALG_GRADIENT_H

#include "smelt/autodiff.h"
#include "smelt/linalg.h"

smelt_status gradient_record_cholesky(const smelt_linalg_desc *desc, smelt_array *a, smelt_array *l);
/* q NULL: only r was computed. */
smelt_status gradient_record_qr(const smelt_linalg_desc *desc, smelt_array *a, smelt_array *q,
                                smelt_array *r);
smelt_status gradient_record_solve(const smelt_linalg_desc *desc, smelt_array *a, smelt_array *b,
                                   smelt_array *x);
smelt_status gradient_record_triangular(const smelt_linalg_desc *desc, smelt_array *a, smelt_array *b,
                                        smelt_array *x);
smelt_status gradient_record_lstsq(const smelt_linalg_desc *desc, smelt_array *a, smelt_array *b,
                                   smelt_array *x);

#endif
