/* Derivatives of elementwise operations, as expressions of the inputs x (or a and b), the result y and the
 * cotangent g. Each is linear in g, so that it serves tangents as well. */
#include "autodiff/rules.h"

#define ADD(a, b) expr_binary(e, SMELT_OPERATION_ADD, a, b)
#define SUB(a, b) expr_binary(e, SMELT_OPERATION_SUBTRACT, a, b)
#define MUL(a, b) expr_binary(e, SMELT_OPERATION_MULTIPLY, a, b)
#define DIV(a, b) expr_binary(e, SMELT_OPERATION_DIVIDE, a, b)
#define NEG(a) expr_unary(e, SMELT_OPERATION_NEGATIVE, a)
#define SQR(a) expr_unary(e, SMELT_OPERATION_SQUARE, a)
#define ONE(operation, a) expr_unary(e, SMELT_OPERATION_##operation, a)
#define TIMES(a, number) expr_with(e, SMELT_OPERATION_MULTIPLY, a, number)
#define PLUS(a, number) expr_with(e, SMELT_OPERATION_ADD, a, number)
#define FROM(number, a) expr_from(e, SMELT_OPERATION_SUBTRACT, number, a)

#define LOG_2 0.693147180559945309417
#define LOG_10 2.30258509299404568402
#define TWO_OVER_ROOT_PI 1.12837916709551257390

/* ---- Of one input. */

/* clang-format off */
#define UNARY_DERIVATIVES(X)                                        \
    X(NEGATIVE, NEG(g))                                             \
    X(ABS, MUL(g, ONE(SIGN, x)))                                    \
    X(EXP, MUL(g, y))                                               \
    X(EXPM1, MUL(g, PLUS(y, 1)))                                    \
    X(LOG, DIV(g, x))                                               \
    X(LOG2, DIV(g, TIMES(x, LOG_2)))                                \
    X(LOG10, DIV(g, TIMES(x, LOG_10)))                              \
    X(LOG1P, DIV(g, PLUS(x, 1)))                                    \
    X(SQRT, DIV(g, TIMES(y, 2)))                                    \
    X(RSQRT, MUL(g, TIMES(DIV(y, x), -0.5)))                        \
    X(SQUARE, MUL(g, TIMES(x, 2)))                                  \
    X(RECIPROCAL, NEG(MUL(g, SQR(y))))                              \
    X(SIN, MUL(g, ONE(COS, x)))                                     \
    X(COS, NEG(MUL(g, ONE(SIN, x))))                                \
    X(TAN, MUL(g, PLUS(SQR(y), 1)))                                 \
    X(ARCSIN, MUL(g, ONE(RSQRT, FROM(1, SQR(x)))))                  \
    X(ARCCOS, NEG(MUL(g, ONE(RSQRT, FROM(1, SQR(x))))))             \
    X(ARCTAN, DIV(g, PLUS(SQR(x), 1)))                              \
    X(SINH, MUL(g, ONE(COSH, x)))                                   \
    X(COSH, MUL(g, ONE(SINH, x)))                                   \
    X(TANH, MUL(g, FROM(1, SQR(y))))                                \
    X(ARCSINH, MUL(g, ONE(RSQRT, PLUS(SQR(x), 1))))                 \
    X(ARCCOSH, MUL(g, ONE(RSQRT, PLUS(SQR(x), -1))))                \
    X(ARCTANH, DIV(g, FROM(1, SQR(x))))                             \
    X(SIGMOID, MUL(g, MUL(y, FROM(1, y))))                          \
    X(ERF, MUL(g, TIMES(ONE(EXP, NEG(SQR(x))), TWO_OVER_ROOT_PI)))  \
    X(ERFINV, MUL(g, TIMES(ONE(EXP, SQR(y)), 1 / TWO_OVER_ROOT_PI))) \
    X(REAL, g)                                                      \
    X(IMAG, TIMES(g, 0))                                            \
    X(CONJUGATE, g)                                                 \
    X(IDENTITY, g)
/* clang-format on */

smelt_array *vjp_unary(struct expression *e, const struct node *node, int input, smelt_array *g) {
    smelt_array *x = node->inputs[0], *y = node->outputs[0];
    (void)input;
    switch (node->desc.operation) {
#define CASE(operation, derivative)   \
    case SMELT_OPERATION_##operation: \
        return derivative;
        UNARY_DERIVATIVES(CASE) /* NOLINT(bugprone-branch-clone): rows of the table may agree */
#undef CASE
    default:
        return NULL;
    }
}

/* ---- Of two. */

/* The side that counts gets g, equal sides half of it each. */
static smelt_array *choose(struct expression *e, smelt_operation wins, smelt_array *mine, smelt_array *other,
                           smelt_array *g) {
    smelt_array *zero = expr_number(e, 0);
    smelt_array *shared =
        expr_apply(e, &(smelt_apply_desc){
                          .operation = SMELT_OPERATION_WHERE,
                          .inputs = {expr_binary(e, SMELT_OPERATION_EQUAL, mine, other), TIMES(g, 0.5), zero},
                          .weak = 4});
    return expr_where(e, expr_binary(e, wins, mine, other), g, shared);
}

static smelt_array *power_by_base(struct expression *e, smelt_array *a, smelt_array *b, smelt_array *g) {
    smelt_array *slope = MUL(b, expr_binary(e, SMELT_OPERATION_POWER, a, PLUS(b, -1)));
    smelt_array *flat = expr_with(e, SMELT_OPERATION_EQUAL, b, 0);
    return expr_apply(e, &(smelt_apply_desc){.operation = SMELT_OPERATION_WHERE,
                                             .inputs = {flat, expr_number(e, 0), MUL(g, slope)},
                                             .weak = 2});
}

/* Where the base is not positive only integer exponents have a power: the derivative by them is taken as 0.
 */
static smelt_array *power_by_exponent(struct expression *e, smelt_array *a, smelt_array *y, smelt_array *g) {
    smelt_array *positive = expr_with(e, SMELT_OPERATION_GREATER, a, 0);
    smelt_array *base = expr_apply(e, &(smelt_apply_desc){.operation = SMELT_OPERATION_WHERE,
                                                          .inputs = {positive, a, expr_number(e, 1)},
                                                          .weak = 4});
    return expr_apply(
        e, &(smelt_apply_desc){.operation = SMELT_OPERATION_WHERE,
                               .inputs = {positive, MUL(g, MUL(y, ONE(LOG, base))), expr_number(e, 0)},
                               .weak = 4});
}

/* By b if `input` is 1. */
/* clang-format off */
#define BINARY_DERIVATIVES(X)                                                                    \
    X(ADD, g, g)                                                                                 \
    X(SUBTRACT, g, NEG(g))                                                                       \
    X(MULTIPLY, MUL(g, b), MUL(g, a))                                                            \
    X(DIVIDE, DIV(g, b), NEG(MUL(g, DIV(y, b))))                                                 \
    X(REMAINDER, g, NEG(MUL(g, expr_binary(e, SMELT_OPERATION_FLOOR_DIVIDE, a, b))))                \
    X(POWER, power_by_base(e, a, b, g), power_by_exponent(e, a, y, g))                           \
    X(MAXIMUM, choose(e, SMELT_OPERATION_GREATER, a, b, g),                                      \
      choose(e, SMELT_OPERATION_GREATER, b, a, g))                                               \
    X(MINIMUM, choose(e, SMELT_OPERATION_LESS, a, b, g), choose(e, SMELT_OPERATION_LESS, b, a, g)) \
    X(ARCTAN2, MUL(g, DIV(b, ADD(SQR(a), SQR(b)))), NEG(MUL(g, DIV(a, ADD(SQR(a), SQR(b))))))    \
    X(LOGADDEXP, MUL(g, ONE(SIGMOID, SUB(a, b))), MUL(g, ONE(SIGMOID, SUB(b, a))))
/* clang-format on */

smelt_array *vjp_binary(struct expression *e, const struct node *node, int input, smelt_array *g) {
    smelt_array *a = node->inputs[0], *b = node->inputs[1], *y = node->outputs[0];
    switch (node->desc.operation) {
#define CASE(operation, by_a, by_b)   \
    case SMELT_OPERATION_##operation: \
        return input == 0 ? by_a : by_b;
        BINARY_DERIVATIVES(CASE) /* NOLINT(bugprone-branch-clone): so may its columns */
#undef CASE
    default:
        return NULL;
    }
}

/* ---- The others. */

smelt_array *vjp_where(struct expression *e, const struct node *node, int input, smelt_array *g) {
    smelt_array *zero = expr_number(e, 0);
    return expr_apply(
        e, &(smelt_apply_desc){.operation = SMELT_OPERATION_WHERE,
                               .inputs = {node->inputs[0], input == 1 ? g : zero, input == 1 ? zero : g},
                               .weak = input == 1 ? 4 : 2});
}

smelt_array *vjp_astype(struct expression *e, const struct node *node, int input, smelt_array *g) {
    (void)input;
    return expr_as(e, g, node->inputs[0]);
}

/* ---- The table of all rules. */

const struct rule *rule_find(smelt_operation operation) {
    static const struct rule table[SMELT_OPERATION_END] = {
#define UNARY(upper, derivative) [SMELT_OPERATION_##upper] = {vjp_unary, LINEAR_ELEMENTWISE},
#define BINARY(upper, by_a, by_b) [SMELT_OPERATION_##upper] = {vjp_binary, LINEAR_ELEMENTWISE},
#define RULE(upper, who, linearity) [SMELT_OPERATION_##upper] = {vjp_##who, LINEAR_##linearity},
        UNARY_DERIVATIVES(UNARY) BINARY_DERIVATIVES(BINARY) RULE_TABLE(RULE)
#undef UNARY
#undef BINARY
#undef RULE
    };
    return table[operation].vjp ? &table[operation] : NULL;
}
