#!/usr/bin/env python3
"""Constants and numeric_limits: the values of all macros, their types, the limits of every type.

Usage: test_limits.py SMELT
"""
import math

from driver import Check, main, run
from numbers_of import BFLOAT, BOOL, EVERY, FLOAT, HALF, INT, REALS, UCHAR

NUMBERS = {"E": math.e, "LOG2E": math.log2(math.e), "LOG10E": math.log10(math.e), "LN2": math.log(2), "LN10": math.log(10),
           "PI": math.pi, "PI_2": math.pi / 2, "PI_4": math.pi / 4, "1_PI": 1 / math.pi, "2_PI": 2 / math.pi,
           "2_SQRTPI": 2 / math.sqrt(math.pi), "SQRT2": math.sqrt(2), "SQRT1_2": math.sqrt(0.5)}
SUFFIXES = {"F": FLOAT, "H": HALF, "BF": BFLOAT}
# Written out so that each name stands in a test.
CONSTANTS = """M_E_F M_LOG2E_F M_LOG10E_F M_LN2_F M_LN10_F M_PI_F M_PI_2_F M_PI_4_F M_1_PI_F M_2_PI_F M_2_SQRTPI_F M_SQRT2_F
M_SQRT1_2_F M_E_H M_LOG2E_H M_LOG10E_H M_LN2_H M_LN10_H M_PI_H M_PI_2_H M_PI_4_H M_1_PI_H M_2_PI_H M_2_SQRTPI_H M_SQRT2_H
M_SQRT1_2_H M_E_BF M_LOG2E_BF M_LOG10E_BF M_LN2_BF M_LN10_BF M_PI_BF M_PI_2_BF M_PI_4_BF M_1_PI_BF M_2_PI_BF M_2_SQRTPI_BF
M_SQRT2_BF M_SQRT1_2_BF""".split()
WHOLE = {"CHAR_BIT": 8, "SCHAR_MAX": 127, "SCHAR_MIN": -128, "UCHAR_MAX": 255, "CHAR_MAX": 127, "CHAR_MIN": -128,
         "USHRT_MAX": 65535, "SHRT_MAX": 32767, "SHRT_MIN": -32768, "INT_MAX": 2**31 - 1, "INT_MIN": -(2**31),
         "UINT_MAX": 2**32 - 1, "LONG_MAX": 2**63 - 1, "LONG_MIN": -(2**63), "ULONG_MAX": 2**64 - 1,
         "FLT_DIG": 6, "FLT_MANT_DIG": 24, "FLT_MAX_10_EXP": 38, "FLT_MAX_EXP": 128, "FLT_MIN_10_EXP": -37, "FLT_MIN_EXP": -125,
         "FLT_RADIX": 2, "HALF_DIG": 3, "HALF_MANT_DIG": 11, "HALF_MAX_10_EXP": 4, "HALF_MAX_EXP": 16, "HALF_MIN_10_EXP": -4,
         "HALF_MIN_EXP": -13, "HALF_RADIX": 2, "FP_ILOGB0": -(2**31), "FP_ILOGBNAN": 2**31 - 1}
REAL = {"FLT_MAX": (FLOAT, (2 - 2.0**-23) * 2.0**127), "FLT_MIN": (FLOAT, 2.0**-126), "FLT_EPSILON": (FLOAT, 2.0**-23),
        "HALF_MAX": (HALF, 65504.0), "HALF_MIN": (HALF, 2.0**-14), "HALF_EPSILON": (HALF, 2.0**-10),
        "MAXFLOAT": (FLOAT, (2 - 2.0**-23) * 2.0**127), "MAXHALF": (HALF, 65504.0), "HUGE_VALF": (FLOAT, math.inf),
        "HUGE_VALH": (HALF, math.inf), "INFINITY": (FLOAT, math.inf), "NAN": (FLOAT, math.nan),
        "BFLT_MAX": (BFLOAT, (2 - 2.0**-7) * 2.0**127), "BFLT_MIN": (BFLOAT, 2.0**-126), "BFLT_EPSILON": (BFLOAT, 2.0**-7)}


def constant(text, result, value):
    return Check(text, result, lambda x, v=value: v, (1,))


def macros(smelt):
    checks = [constant(f"{name} == {value if value > -(2**63) else '(-9223372036854775807l - 1)'}{'ul' if value >= 2**63 else ''}", BOOL, True)
              for name, value in WHOLE.items()]
    checks += [constant(name, t, value) for name, (t, value) in REAL.items()]
    for name in CONSTANTS:
        number, suffix = name[2:].rsplit("_", 1)
        checks.append(constant(name, SUFFIXES[suffix], SUFFIXES[suffix].rounded(NUMBERS[number])))
    return run(smelt, "macros", [UCHAR], checks)


def limits(smelt):
    checks = []
    for t in EVERY:
        limit = f"numeric_limits<{t.name}>"
        real = t in REALS
        if real:
            values = {"max": t.largest, "min": 2.0 ** (1 - t.top), "lowest": -t.largest, "epsilon": 2.0 ** (1 - t.digits),
                      "infinity": math.inf, "quiet_NaN": math.nan, "signaling_NaN": math.nan, "denorm_min": 2.0 ** (2 - t.top - t.digits),
                      "round_error": 0.5}
            whole = {"digits": t.digits, "radix": 2, "max_exponent": t.top + 1, "min_exponent": 2 - t.top,
                     "digits10": int((t.digits - 1) * math.log10(2)), "max_exponent10": int(math.log10(t.largest)),
                     "min_exponent10": -int(-math.log10(2.0 ** (1 - t.top))), "max_digits10": math.ceil(1 + t.digits * math.log10(2))}
        else:
            values = {"max": t.high, "min": t.low, "lowest": t.low, "epsilon": 0}
            bits = 1 if t is BOOL else t.bits - (t.kind == "i")
            whole = {"digits": bits, "radix": 2, "digits10": int(bits * math.log10(2))}
        flags = {"is_specialized": True, "is_signed": real or t.kind == "i", "is_integer": not real, "is_exact": not real,
                 "has_infinity": real, "has_quiet_NaN": real, "is_iec559": real, "is_bounded": True}
        checks += [constant(f"{limit}::{name}()", t, value) for name, value in values.items()]
        checks += [constant(f"int({limit}::{name})", INT, value) for name, value in whole.items()]
        checks += [constant(f"bool({limit}::{name})", BOOL, value) for name, value in flags.items()]
    return run(smelt, "numeric_limits", [UCHAR], checks)


main([macros, limits])
