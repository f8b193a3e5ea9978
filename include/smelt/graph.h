/* graph.h — operations on arrays (ops.h) and their derivatives (autodiff.h). */
#ifndef SMELT_GRAPH_H
#define SMELT_GRAPH_H

#include <smelt/autodiff.h>
#include <smelt/ops.h>

#endif
