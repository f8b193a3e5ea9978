"""Coarsened code as PTX that an emulator runs, against the CPU engine: what every thread writes, at edges, behind guards, at
addresses that are aligned or not; loops whose rounds run together. Run as `test_coarse.py SMELT`."""
import os
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from coarse import ANY, PLAIN, Input, Output, check, part, three  # noqa: E402

FOUR_LOADS = r"(ld\.global(?:(?!st\.global)[\s\S])*){4}"
EIGHT_LOADS = FOUR_LOADS.replace("4", "8")
APART4 = ("a block apart", 4, "x")
NEAR4, NEAR8, NEAR2 = ("neighbours", 4, "x"), ("neighbours", 8, "x"), ("neighbours", 2, "x")

# Lengths around those of blocks and of chunks; groups of any size.
for count, group in part(((1, 1), (3, 32), (1024, 256), (1027, 64), (1030, 1024), (333, 100))):
    check("sum", (count,), (group,), [Input("float32", count), Input("float32", count), Output("float32", count)], NEAR4,
          loads=r"ld\.global\.v4\.f32")
for n, least in ((300, 0), (299, 0), (400, 5), (0, 0)):
    check("guarded", (300,), (64,), [Input("float16", 300), Output("float16", 300), n, least], NEAR8)
check("bytes", (517,), (128,), [Input("uint8", 517), Input("uint16", 517), Output("uint32", 517)], NEAR4)
check("narrow", (2051,), (256,), [Input("int8", 2051), Output("int8", 2051), 2045], NEAR8)
check("wide", (517,), (256,), [Input("int64", 517), Output("int64", 517)], NEAR2)
for count, group in part(((515, 64), (512, 256), (700, 96), (333, 100))):
    check("places", (count,), (group,), [Input("uint32", 2048), Output("uint32", count)])
for grid, group in part((((33, 5, 3), (8, 4, 2)), ((16, 8, 4), (16, 2, 2)), ((7, 3, 2), (32, 2, 1)), ((65, 7), (32, 8)))):
    check("places3", grid, group, [Output("uint32", three(grid)[0] * three(grid)[1] * three(grid)[2])])
for w, h in part(((64, 32), (33, 17), (40, 30))):
    check("transposed", (w, h), (32, 8), [Input("float32", w * h), Output("float32", w * h), w, h], ("neighbours", 4, "y"))
for w in part((64, 72, 61)):
    check("rows", (w + 3, 9), (32, 4), [Input("int16", (w + 3) * 9), Input("int16", w), Output("int16", w * 9), w])
# A block apart: blocks cover 1024 threads, and the last ones do not run together.
check("broadcast", (1300,), (256,), [Input("float32", 1300), Input("float32", 20), Output("float32", 1300), 20], APART4)
for start, end in part(((4, 8), (1, 2), (0, 3))):
    check("shifted", (519,), (256,), [Input("float32", 540), Output("float32", 540), start, end], NEAR4)
check("strided", (300,), (128,), [Input("float32", 1000), Output("float32", 600)])
check("backwards", (517,), (256,), [Input("int32", 517), Output("int32", 517)])
check("gathered", (1300,), (256,), [Input("uint32", 1300), Input("float32", 101), Output("float32", 1300)], code="any")
for code, count in (("seen", 517), ("any", 1300)):
    check("ways", (count,), (256,), [Input("int32", count), Input("int32", count), Output("int32", count), Output("int32", count)], code=code)
check("filled", (1029,), (256,), [Output("float16", 1029)], NEAR8)
# Threads that compute for longer than they access, and windows of bytes, gain nothing.
check("window_of_bytes", (517,), (256,), [Input("uint8", 517), Output("uint8", 517), 517], PLAIN)
check("divided", (300,), (256,), [Input("uint8", 900), Output("uint8", 900)], PLAIN)
for w, h in part(((5, 3), (1, 1), (3, 1), (2, 7), (64, 2), (1000, 3), (0, 4), (7, 0))):
    check("unraveled", (517,), (256,), [Output("uint32", 517), w, h], NEAR4)
    check("unraveled_long", (517,), (256,), [Output("int64", 517), w, h])
check("pairs", (517,), (256,), [Input("float32", 1034), Output("float16", 1034)])

# Two rounds: blocks cover 2048 threads; the last ones do not run together.
NEAR16 = ("neighbours", 16, "x")
for count, n in ((2048, 2048), (2053, 2047)):
    check("much", (count,), (256,), [Input("int16", count, 30000), Output("int16", count), n], NEAR16, loads=r"ld\.global\.v4(?:(?!st\.global)[\s\S])*ld\.global\.v4")
for count, group, pitch in ((1100, 64, 72), (1100, 64, 67)):
    check("much_places", (count,), (group,), [Input("int16", 4096, 30000), Output("uint32", count), pitch])
for w, h, group in ((256, 4, (32, 4)), (261, 2, (64, 2))):
    check("much_stored", (w, h), group, [Input("int16", w * h, 30000), Output("int16", w * h), Output("int32", w * h)])

first, shared = Input("int32", 1300), Output("int32", 1300)
check("after", (1300,), (256,), [first, shared, shared, Output("int32", 1300)], APART4,
      expected={3: struct.pack("<1300i", *((value + 1) * 2 for value in first.values))}, code="any")
check("after", (517,), (256,), [first, Output("int32", 517), Input("int32", 517), Output("int32", 517)], NEAR4)
first = Input("float32", 517)
check("in_place", (517,), (256,), [first], expected={0: struct.pack("<517f", *(value * 2 + 1 for value in first.values))})
# Rounds of loops: fewer than run together, as many, more; groups at the edge are full here, for loops step by their size.
for w in part((1, 5, 191, 192, 256, 257, 700)):
    check("scaled_rows", (128,), (64,), [Input("float32", 2 * w), Output("float32", 2 * w), w], PLAIN, loads=FOUR_LOADS)
    check("guarded_rows", (128,), (64,), [Input("float32", 2 * w), Input("float32", w), Output("float32", 2 * w), w], PLAIN, loads=EIGHT_LOADS)
    check("guarded_elements", (128,), (64,), [Input("int32", 2 * w), Output("int32", 2 * w), Output("int32", 256), w], PLAIN, loads=FOUR_LOADS)
for size in part((0, 1, 3, 7, 8, 9, 16, 25)):
    check("windows", (40,), (40,), [Input("int32", 40), Output("int32", 40 * max(size, 1)), Output("int32", 40 * max(size, 1)), 40, size], PLAIN,
          loads=r"setp\.(gt|lt)\.u32[^\n]*, [23];\n[\s\S]*setp\.(gt|lt)\.u32[^\n]*, [23];\n")
for w in part((300, 1, 64, 65, 129, 511, 512, 513, 961)):
    check("summed", (128,), (64,), [Input("int32", 2 * w), Input("uint32", 2 * w, w - 1), Input("int32", w), Output("int32", 384), w],
          PLAIN, loads=r"(ld\.global[^\n]*\n(?:(?!bra|mad)[\s\S])*){8}")
    check("guarded_sums", (128,), (64,), [Input("int32", 2 * w), Output("int32", 128), w], PLAIN)
    check("chased", (128,), (64,), [Input("int32", w), Input("uint32", 2 * w, w - 1), Output("int32", 128), w], PLAIN)
for n in part((256, 258, 255)):
    check("fours", (64,), (32,), [Input("int32", n), Input("int32", n), Output("int32", n), n], ANY,
          loads=r"ld\.global\.v4(?:(?!st\.global)[\s\S])*ld\.global\.v4")
for w in part((60, 256, 333)):
    check("running", (128,), (64,), [Input("int32", 2 * w), Input("int32", w), Output("int32", 2 * w), Output("int32", 128), w], PLAIN)
    check("gathered_rows", (128,), (64,), [Input("uint32", w, w - 1), Input("float32", w), Output("float32", 2 * w), w], PLAIN, loads=FOUR_LOADS)
    first = Input("int32", 2 * w)
    check("rows_in_place", (128,), (64,), [first, w], PLAIN, loads=FOUR_LOADS,
          expected={0: struct.pack(f"<{2 * w}i", *(value * 3 - 1 for value in first.values))})
    first = Input("int32", 2 * (w + 64))
    rows = [list(first.values[r * (w + 64):(r + 1) * (w + 64)]) for r in range(2)]
    for row in rows:
        for c in range(w):
            row[c + 64] = row[c] + 1
    check("chained", (128,), (64,), [first, w], PLAIN, expected={0: struct.pack(f"<{2 * (w + 64)}i", *rows[0], *rows[1])})
first, out = Input("float32", 600), Output("float32", 600)
check("scaled_rows", (128,), (64,), [first, out, 300], PLAIN, code="any")

# Loops over the grid: as many rounds for all neighbours, one more for some, none.
for count, n, step in part(((96, 1000, 96), (96, 96, 96), (96, 193, 97), (100, 0, 100), (96, 90, 96), (64, 300, 70), (1040, 4000, 1040))):
    check("strides", (count,), (64,), [Input("float16", n + 8), Output("float16", n + 8), n, step], NEAR8)
for count, n in part(((96, 700), (101, 500), (64, 65))):
    check("strides_long", (count,), (64,), [Input("float32", n), Input("int16", n), Output("float32", n), n], NEAR4)
    check("strides_summed", (count,), (64,), [Input("int32", n), Output("int32", n), n], NEAR4)
    check("strides_uneven", (count,), (32,), [Input("int32", n + count), Output("int32", n + count), n], NEAR4)
    first = Input("float32", n)
    check("strides_in_place", (count,), (64,), [first, n], NEAR4,
          expected={0: struct.pack(f"<{n}f", *(value * 2 + 1 for value in first.values))})
check("strides_wrapped", (96,), (64,), [Output("int32", 400), 300, 2**32 - 5], NEAR4)
check("wrapped_difference", (300,), (64,), [Output("int32", 300), 2**32 - 6], NEAR4)
check("strides_wrapped_difference", (96,), (64,), [Output("int32", 300), 300, 2**32 - 6], NEAR4)
for count, n, step in part(((96, 1000, 96), (96, 96, 96), (96, 193, 97), (1040, 4000, 1040))):
    check("strides_branches", (count,), (64,), [Input("int16", n + 8), Output("int16", n + 8), n, step], NEAR8)
check("strides_divided", (96,), (64,), [Input("int32", 300), Output("int32", 300), 300], PLAIN)
check("strides_stored", (96,), (64,), [Input("int32", 300), Output("int32", 300), Output("int32", 300), 300], PLAIN)
check("strides_bfloat", (96,), (64,), [Input("uint16", 500, 60000), Output("uint16", 500), Output("float32", 500), 500], NEAR4,
      loads=r"cvt\.rn\.bf16x2\.f32 %r\d+, %f\d+, 0f00000000")
check("bfloat_own", (300,), (64,), [Input("uint16", 300, 0x8000), Input("uint16", 300, 0x7f80), Output("uint16", 300), Output("float32", 300)], NEAR4,
      loads=r"(fma\.rn\.bf16 [^\n]*\n[\s\S]*){16}")
check("bfloat_alone", (96,), (64,), [Input("uint16", 96, 60000), Output("uint16", 290)], ANY, loads=r"cvt\.rn\.bf16x2\.f32 %r\d+, 0f00000000")
check("tables", (256,), (64,), [Input("uint8", 256, 255), Output("int32", 256)], ANY, loads=r"(prmt\.b32[^\n]*\n[\s\S]*){6}")
check("nibbles", (64,), (32,), [Input("uint32", 64, 2**32 - 1), Output("float32", 64 * 48)], ANY, loads=r"(prmt\.b32(?:(?!prmt)[\s\S])*){20}")
check("narrow_floats", (300,), (64,), [Input("uint16", 300, 65535), Input("int8", 300, 127), Output("float32", 300)], ANY)
check("small_floats", (300,), (64,), [Input("uint32", 300, 0xffffffff), Input("uint16", 300, 65535), Output("float32", 3600)], ANY,
      loads=r"(lop3\.b32 [^\n]*0xea[^\n]*\n[\s\S]*){4}")
check("grouped", (20, 3), (4, 8), [Input("uint8", 60), Output("int64", 60)], NEAR2)
print("coarsened code: right")
