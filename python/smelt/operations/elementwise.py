"""Element by element: each function takes arrays of any shape, which are broadcast, and numbers.

Dtypes are those of docs/operations.md: numbers of Python take the dtype of the arrays they meet. Shapes that cannot be broadcast and
dtypes an operation does not have raise ValueError. `stream` is accepted and not looked at."""
from smelt._smelt import Dtype, apply, array
from smelt.operations.arguments import whole
from smelt.operations.types import Array, Stream
__all__ = [
    "abs", "add", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "astype",
    "bitwise_and", "bitwise_invert", "bitwise_or", "bitwise_xor", "ceil", "clip", "conj", "conjugate", "cos",
    "cosh", "degrees", "divide", "equal", "erf", "erfinv", "exp", "expm1", "floor", "floor_divide", "greater",
    "greater_equal", "imag", "isfinite", "isinf", "isnan", "isneginf", "isposinf", "left_shift", "less",
    "less_equal", "log", "log10", "log1p", "log2", "logaddexp", "logical_and", "logical_not", "logical_or",
    "maximum", "minimum", "multiply", "nan_to_num", "negative", "not_equal", "power", "radians", "real",
    "reciprocal", "remainder", "right_shift", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt",
    "square", "stop_gradient", "subtract", "tan", "tanh", "where",
]

def abs(a: Array, /, *, stream: Stream = None) -> array:
    """The absolute value; of complex64 the modulus, as float32."""
    return apply("abs", (a,))


def arccos(a: Array, /, *, stream: Stream = None) -> array:
    """The inverse cosine, in radians."""
    return apply("arccos", (a,))


def arccosh(a: Array, /, *, stream: Stream = None) -> array:
    """The inverse hyperbolic cosine."""
    return apply("arccosh", (a,))


def arcsin(a: Array, /, *, stream: Stream = None) -> array:
    """The inverse sine, in radians."""
    return apply("arcsin", (a,))


def arcsinh(a: Array, /, *, stream: Stream = None) -> array:
    """The inverse hyperbolic sine."""
    return apply("arcsinh", (a,))


def arctan(a: Array, /, *, stream: Stream = None) -> array:
    """The inverse tangent, in radians."""
    return apply("arctan", (a,))


def arctanh(a: Array, /, *, stream: Stream = None) -> array:
    """The inverse hyperbolic tangent."""
    return apply("arctanh", (a,))


def bitwise_invert(a: Array, /, *, stream: Stream = None) -> array:
    """Every bit inverted; integers and bool."""
    return apply("bitwise_invert", (a,))


def ceil(a: Array, /, *, stream: Stream = None) -> array:
    """Rounded up to a whole number."""
    return apply("ceil", (a,))


def cos(a: Array, /, *, stream: Stream = None) -> array:
    """The cosine of radians."""
    return apply("cos", (a,))


def cosh(a: Array, /, *, stream: Stream = None) -> array:
    """The hyperbolic cosine."""
    return apply("cosh", (a,))


def erfinv(a: Array, /, *, stream: Stream = None) -> array:
    """The inverse of erf, for -1 to 1."""
    return apply("erfinv", (a,))


def erf(a: Array, /, *, stream: Stream = None) -> array:
    """The error function."""
    return apply("erf", (a,))


def exp(a: Array, /, *, stream: Stream = None) -> array:
    """e to the power of each element."""
    return apply("exp", (a,))


def expm1(a: Array, /, *, stream: Stream = None) -> array:
    """exp(a) - 1, exact for small a."""
    return apply("expm1", (a,))


def floor(a: Array, /, *, stream: Stream = None) -> array:
    """Rounded down to a whole number."""
    return apply("floor", (a,))


def imag(a: Array, /, *, stream: Stream = None) -> array:
    """The imaginary part of complex64, as float32."""
    return apply("imag", (a,))


def isfinite(a: Array, /, *, stream: Stream = None) -> array:
    """Whether each element is neither infinite nor NaN."""
    return apply("isfinite", (a,))


def isinf(a: Array, /, *, stream: Stream = None) -> array:
    """Whether each element is infinite."""
    return apply("isinf", (a,))


def isnan(a: Array, /, *, stream: Stream = None) -> array:
    """Whether each element is NaN."""
    return apply("isnan", (a,))


def log(a: Array, /, *, stream: Stream = None) -> array:
    """The natural logarithm."""
    return apply("log", (a,))


def log10(a: Array, /, *, stream: Stream = None) -> array:
    """The logarithm to base 10."""
    return apply("log10", (a,))


def log1p(a: Array, /, *, stream: Stream = None) -> array:
    """log(1 + a), exact for small a."""
    return apply("log1p", (a,))


def log2(a: Array, /, *, stream: Stream = None) -> array:
    """The logarithm to base 2."""
    return apply("log2", (a,))


def logical_not(a: Array, /, *, stream: Stream = None) -> array:
    """Whether each element is 0."""
    return apply("logical_not", (a,))


def negative(a: Array, /, *, stream: Stream = None) -> array:
    """-a."""
    return apply("negative", (a,))


def real(a: Array, /, *, stream: Stream = None) -> array:
    """The real part of complex64, as float32; other dtypes themselves."""
    return apply("real", (a,))


def reciprocal(a: Array, /, *, stream: Stream = None) -> array:
    """1 / a."""
    return apply("reciprocal", (a,))


def rsqrt(a: Array, /, *, stream: Stream = None) -> array:
    """1 / sqrt(a)."""
    return apply("rsqrt", (a,))


def sigmoid(a: Array, /, *, stream: Stream = None) -> array:
    """1 / (1 + exp(-a))."""
    return apply("sigmoid", (a,))


def sign(a: Array, /, *, stream: Stream = None) -> array:
    """-1, 0 or 1 as the element is below, at or above 0."""
    return apply("sign", (a,))


def sin(a: Array, /, *, stream: Stream = None) -> array:
    """The sine of radians."""
    return apply("sin", (a,))


def sinh(a: Array, /, *, stream: Stream = None) -> array:
    """The hyperbolic sine."""
    return apply("sinh", (a,))


def sqrt(a: Array, /, *, stream: Stream = None) -> array:
    """The square root."""
    return apply("sqrt", (a,))


def square(a: Array, /, *, stream: Stream = None) -> array:
    """a * a."""
    return apply("square", (a,))


def stop_gradient(a: Array, /, *, stream: Stream = None) -> array:
    """a, through which no gradient flows."""
    return apply("stop_gradient", (a,))


def tan(a: Array, /, *, stream: Stream = None) -> array:
    """The tangent of radians."""
    return apply("tan", (a,))


def tanh(a: Array, /, *, stream: Stream = None) -> array:
    """The hyperbolic tangent."""
    return apply("tanh", (a,))


def add(a: Array, b: Array, stream: Stream = None) -> array:
    """a + b."""
    return apply("add", (a, b))


def arctan2(a: Array, b: Array, stream: Stream = None) -> array:
    """The angle of the point (b, a), in radians."""
    return apply("arctan2", (a, b))


def bitwise_and(a: Array, b: Array, stream: Stream = None) -> array:
    """a & b; integers and bool."""
    return apply("bitwise_and", (a, b))


def bitwise_or(a: Array, b: Array, stream: Stream = None) -> array:
    """a | b; integers and bool."""
    return apply("bitwise_or", (a, b))


def bitwise_xor(a: Array, b: Array, stream: Stream = None) -> array:
    """a ^ b; integers and bool."""
    return apply("bitwise_xor", (a, b))


def divide(a: Array, b: Array, stream: Stream = None) -> array:
    """a / b; of integers as float32."""
    return apply("divide", (a, b))


def equal(a: Array, b: Array, stream: Stream = None) -> array:
    """a == b."""
    return apply("equal", (a, b))


def floor_divide(a: Array, b: Array, stream: Stream = None) -> array:
    """a / b rounded toward minus infinity; integers: x // 0 is 0."""
    return apply("floor_divide", (a, b))


def greater(a: Array, b: Array, stream: Stream = None) -> array:
    """a > b."""
    return apply("greater", (a, b))


def greater_equal(a: Array, b: Array, stream: Stream = None) -> array:
    """a >= b."""
    return apply("greater_equal", (a, b))


def left_shift(a: Array, b: Array, stream: Stream = None) -> array:
    """a << b, b modulo the bits of the dtype."""
    return apply("left_shift", (a, b))


def less(a: Array, b: Array, stream: Stream = None) -> array:
    """a < b."""
    return apply("less", (a, b))


def less_equal(a: Array, b: Array, stream: Stream = None) -> array:
    """a <= b."""
    return apply("less_equal", (a, b))


def logaddexp(a: Array, b: Array, stream: Stream = None) -> array:
    """log(exp(a) + exp(b))."""
    return apply("logaddexp", (a, b))


def logical_and(a: Array, b: Array, stream: Stream = None) -> array:
    """Whether both are not 0."""
    return apply("logical_and", (a, b))


def logical_or(a: Array, b: Array, stream: Stream = None) -> array:
    """Whether one is not 0."""
    return apply("logical_or", (a, b))


def maximum(a: Array, b: Array, stream: Stream = None) -> array:
    """The larger of each pair; NaN if one is."""
    return apply("maximum", (a, b))


def minimum(a: Array, b: Array, stream: Stream = None) -> array:
    """The smaller of each pair; NaN if one is."""
    return apply("minimum", (a, b))


def multiply(a: Array, b: Array, stream: Stream = None) -> array:
    """a * b."""
    return apply("multiply", (a, b))


def not_equal(a: Array, b: Array, stream: Stream = None) -> array:
    """a != b."""
    return apply("not_equal", (a, b))


def power(a: Array, b: Array, stream: Stream = None) -> array:
    """a to the power of b."""
    return apply("power", (a, b))


def remainder(a: Array, b: Array, stream: Stream = None) -> array:
    """The rest of floor_divide, with the sign of b; integers: x % 0 is x."""
    return apply("remainder", (a, b))


def right_shift(a: Array, b: Array, stream: Stream = None) -> array:
    """a >> b, b modulo the bits of the dtype."""
    return apply("right_shift", (a, b))


def subtract(a: Array, b: Array, stream: Stream = None) -> array:
    """a - b."""
    return apply("subtract", (a, b))


def astype(a: array, dtype: Dtype, stream: Stream = None) -> array:
    """The array as another dtype: floats round to nearest even, to integers they truncate and saturate, integers wrap.

    The array itself if it has that dtype."""
    return a if a.dtype == dtype else apply("astype", (a,), dtype=dtype)


def clip(a: Array, /, a_min: Array | None, a_max: Array | None, *, stream: Stream = None) -> array:
    """a, not below a_min and not above a_max; None means no bound. ValueError if both are None."""
    if a_min is None and a_max is None:
        raise ValueError("clip: a_min and a_max are both None; expected at least one bound")
    if a_min is None:
        return minimum(a, a_max)
    return maximum(a, a_min) if a_max is None else apply("clip", (a, a_min, a_max))


def conjugate(a: Array, *, stream: Stream = None) -> array:
    """The complex conjugate; other dtypes themselves."""
    return apply("conjugate", (a,))


conj = conjugate


def degrees(a: Array, /, *, stream: Stream = None) -> array:
    """Radians as degrees."""
    return multiply(a, 57.29577951308232)


def isneginf(a: Array, stream: Stream = None) -> array:
    """Whether each element is minus infinity."""
    return equal(a, -float("inf"))


def isposinf(a: Array, stream: Stream = None) -> array:
    """Whether each element is plus infinity."""
    return equal(a, float("inf"))


def nan_to_num(a: Array, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None,
               stream: Stream = None) -> array:
    """a with NaN, infinity and minus infinity replaced: by default 0, and float32's largest and smallest numbers."""
    a = where(isnan(a), nan, a)
    a = where(isposinf(a), 3.4028234663852886e38 if posinf is None else posinf, a)
    return where(isneginf(a), -3.4028234663852886e38 if neginf is None else neginf, a)


def radians(a: Array, /, *, stream: Stream = None) -> array:
    """Degrees as radians."""
    return multiply(a, 0.017453292519943295)


def round(a: Array, /, decimals: int = 0, stream: Stream = None) -> array:
    """Rounded to so many decimals, halves to even."""
    if whole("round", "decimals", decimals) == 0:
        return apply("round", (a,))
    scale = 10.0**decimals
    return divide(apply("round", (multiply(a, scale),)), scale)


def where(condition: Array, x: Array, y: Array, /, *, stream: Stream = None) -> array:
    """x where the condition is not 0, y elsewhere; all three are broadcast."""
    return apply("where", (condition, x, y))
