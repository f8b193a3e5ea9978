"""Metal's scalar types as Python sees them: bit patterns, values, and exact rounding between them."""
import math
import random
from fractions import Fraction


class Type:
    """name in Metal; descr, the .npy type; suffix of an input's file name; kind: b(ool), i, u or f."""

    def __init__(self, name, descr, kind, bits, suffix="", digits=0, top=0):
        self.name, self.descr, self.kind, self.bits, self.suffix = name, descr, kind, bits, suffix
        self.digits, self.top = digits, top  # of a float: bits of the significand, exponent of the largest power of two
        self.unsigned = self

    def __repr__(self):
        return self.name

    @property
    def low(self):
        return -(1 << (self.bits - 1)) if self.kind == "i" else 0

    @property
    def high(self):
        return 1 if self.kind == "b" else (1 << (self.bits - (self.kind == "i"))) - 1

    # ---- Floats by their bits.
    @property
    def fraction_bits(self):
        return self.digits - 1

    @property
    def infinity_bits(self):
        return (2 * self.top + 1) << self.fraction_bits

    @property
    def largest(self):
        return self.value(self.infinity_bits - 1)

    def value(self, bits):
        """What a bit pattern means: an int, a bool, or a float (floats of all three types are exact in Python's)."""
        if self.kind == "b":
            return bool(bits)
        if self.kind != "f":
            return bits - (1 << self.bits) if self.kind == "i" and bits >> (self.bits - 1) else bits
        sign = -1.0 if bits >> (self.bits - 1) else 1.0
        bits &= (1 << (self.bits - 1)) - 1
        exponent, fraction = bits >> self.fraction_bits, bits & ((1 << self.fraction_bits) - 1)
        if exponent == 2 * self.top + 1:
            return math.nan if fraction else sign * math.inf
        if exponent == 0:
            return sign * math.ldexp(fraction, 1 - self.top - self.fraction_bits)
        return sign * math.ldexp(fraction + (1 << self.fraction_bits), exponent - self.top - self.fraction_bits)

    def pattern(self, value):
        """The bits of a value of the type; of any number, rounded to it. Integers wrap, reals become integers as Smelt
        says: truncated, cut to the range, NaN is 0."""
        if self.kind == "b":
            return int(value != 0)
        if self.kind != "f":
            if isinstance(value, float):
                if math.isnan(value):
                    return 0
                if math.isinf(value):
                    value = self.high if value > 0 else self.low
                value = min(max(math.trunc(value), self.low), self.high)
            return int(value) & ((1 << self.bits) - 1)
        if isinstance(value, float) and math.isnan(value):
            return self.infinity_bits | 1 << (self.fraction_bits - 1)
        sign = 1 << (self.bits - 1) if math.copysign(1, value) < 0 else 0
        if isinstance(value, float) and math.isinf(value):
            return sign | self.infinity_bits
        x = abs(Fraction(value))
        if x == 0:
            return sign
        exponent = max(x.numerator.bit_length() - x.denominator.bit_length() - 1, 1 - self.top)
        while x >= Fraction(2) ** (exponent + 1):
            exponent += 1
        unit = Fraction(2) ** (exponent - self.fraction_bits)
        count = round(x / unit)  # to nearest, halves to even
        if count >> self.digits:
            count, exponent = count >> 1, exponent + 1
        if exponent > self.top:
            return sign | self.infinity_bits
        if count >> self.fraction_bits:  # normal
            return sign | ((exponent + self.top) << self.fraction_bits) | (count - (1 << self.fraction_bits))
        return sign | count

    def rounded(self, value):
        return self.value(self.pattern(value))

    def points(self, count, seed):
        """Bit patterns: the corners, then random ones of all sizes."""
        rng = random.Random(f"{self.name} {seed}")
        mask = (1 << self.bits) - 1
        if self.kind == "b":
            return [rng.getrandbits(1) for _ in range(count)]
        if self.kind == "f":
            corners = [0, 1 << (self.bits - 1), 1, self.infinity_bits, self.infinity_bits - 1, self.infinity_bits + 1,
                       1 << self.fraction_bits, (1 << self.fraction_bits) - 1]
            corners += [self.pattern(v) for v in (1.0, -1.0, 0.5, 1.5, 2.5, -0.75, 127.5, 255.0, 300.0, 65535.0, 70000.0, -129.0)]
            corners += [c ^ 1 << (self.bits - 1) for c in corners[3:8]]
        else:
            corners = [0, 1, 2, mask, mask - 1, mask >> 1, (mask >> 1) + 1, (mask >> 1) - 1, 0x55 & mask, 24 & mask]
        rng.shuffle(corners)
        points = corners[:count // 2]
        while len(points) < count:
            bits = rng.getrandbits(self.bits)
            if self.kind != "f":
                bits = bits >> rng.randrange(self.bits)
                if rng.getrandbits(1):
                    bits ^= mask
            elif rng.getrandbits(1):  # of moderate size
                bits = self.pattern(self.rounded(rng.uniform(-8, 8) * 2.0 ** rng.randrange(-3, 6)))
            points.append(bits)
        rng.shuffle(points)
        return points


BOOL = Type("bool", "|b1", "b", 8)
CHAR, UCHAR = Type("char", "|i1", "i", 8), Type("uchar", "|u1", "u", 8)
SHORT, USHORT = Type("short", "<i2", "i", 16), Type("ushort", "<u2", "u", 16)
INT, UINT = Type("int", "<i4", "i", 32), Type("uint", "<u4", "u", 32)
LONG, ULONG = Type("long", "<i8", "i", 64), Type("ulong", "<u8", "u", 64)
HALF = Type("half", "<f2", "f", 16, "", 11, 15)
BFLOAT = Type("bfloat", "<V2", "f", 16, ":bfloat16", 8, 127)
FLOAT = Type("float", "<f4", "f", 32, "", 24, 127)
CHAR.unsigned, SHORT.unsigned, INT.unsigned, LONG.unsigned = UCHAR, USHORT, UINT, ULONG
INTEGERS = [CHAR, UCHAR, SHORT, USHORT, INT, UINT, LONG, ULONG]
REALS = [HALF, BFLOAT, FLOAT]
EVERY = [BOOL, *INTEGERS, *REALS]
