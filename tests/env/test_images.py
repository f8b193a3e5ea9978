"""Outputs written as PNG images: the pixels are the array's, and a machine without libpng is told so."""
import os
import struct
import subprocess
import zlib

from support import SMELT, expect, expect_equal, expect_failure, run_tests

CHANNELS = {0: 1, 2: 3, 6: 4}


def paeth(left, up, corner):
    guess = left + up - corner
    return min((left, up, corner), key=lambda value: abs(guess - value))


def unfilter(kind, row, above, step):
    for i, byte in enumerate(row):
        left = row[i - step] if i >= step else 0
        corner = above[i - step] if i >= step else 0
        row[i] = (byte + (0, left, above[i], (left + above[i]) // 2, paeth(left, above[i], corner))[kind]) % 256
    return row


def read_png(path):
    """(width, height, channels, bytes) of an 8-bit image."""
    with open(path, "rb") as file:
        data = file.read()
    expect_equal(data[:8], b"\x89PNG\r\n\x1a\n", "the file's start")
    at, packed, head = 8, b"", None
    while at < len(data):
        length, name = struct.unpack(">I4s", data[at:at + 8])
        if name == b"IHDR":
            head = struct.unpack(">IIBBBBB", data[at + 8:at + 8 + length])
        packed += data[at + 8:at + 8 + length] if name == b"IDAT" else b""
        at += length + 12
    width, height, depth, kind = head[:4]
    expect_equal(depth, 8, "bits per channel")
    rows, step = zlib.decompress(packed), CHANNELS[kind]
    size, above, out = width * step, bytearray(width * step), b""
    for y in range(height):
        start = y * (size + 1)
        above = unfilter(rows[start], bytearray(rows[start + 1:start + 1 + size]), above, step)
        out += above
    return width, height, step, out


def command(scratch, body, output):
    return ["run", "--body", scratch.file("image.body", body), "-o", output, "--grid", "60"]


def write(scratch, body, output):
    done = scratch.run(command(scratch, body, output))
    expect_equal((done.returncode, done.stdout, done.stderr), (0, "", ""), "status and what was printed")


def check_pixels_are_the_array_s(scratch):
    path = os.path.join(scratch.out, "x.png")
    for shape, size in (("6x10", (10, 6, 1)), ("12x5x1", (5, 12, 1)), ("4x5x3", (5, 4, 3)), ("3x5x4", (5, 3, 4))):
        write(scratch, "uint i = thread_position_in_grid.x; out[i] = i * 4;", f"out:uint8:{shape}={path}")
        expect_equal(read_png(path), (*size, bytes(4 * i for i in range(60))), f"the image of {shape}")
    expect_equal(os.listdir(scratch.out), ["x.png"], "what is left in the folder")


def check_floats_are_clamped_and_rounded(scratch):
    path = os.path.join(scratch.out, "x.png")
    body = ("uint i = thread_position_in_grid.x; float x = (float(i) - 10) / 40;"
            "out[i] = i == 59 ? NAN : i == 58 ? INFINITY : x;")
    wanted = [max(0, min(255, int((i - 10) / 40 * 255 + 0.5))) for i in range(58)] + [255, 0]
    for dtype, error in (("float32", 0), ("float16", 1), ("bfloat16", 2)):
        write(scratch, body, f"out:{dtype}:6x10={path}")
        found = list(read_png(path)[3])
        worst = max(abs(a - b) for a, b in zip(found, wanted))
        expect(worst <= error and found[58:] == [255, 0], f"{dtype}: pixels are {found}, expected {wanted}")


def check_a_pipe_takes_an_image_in_place(scratch):
    path = os.path.join(scratch.out, "x.png")
    os.mkfifo(path)
    arguments = command(scratch, "out[thread_position_in_grid.x] = 7;", f"out:uint8:6x10={path}")
    with subprocess.Popen([SMELT, *arguments], env=scratch.environment()) as process:
        with open(path, "rb") as file:
            start = file.read()[:4]
        expect_equal(process.wait(), 0, "the exit status")
    expect_equal(start, b"\x89PNG", "what came through the pipe")


def check_without_libpng_it_says_so(scratch):
    folder = os.path.dirname(scratch.file("lib/libpng16.so.16", ""))
    path = os.path.join(scratch.out, "x.png")
    done = scratch.run(command(scratch, "out[thread_position_in_grid.x] = 7;", f"out:uint8:6x10={path}"),
                       LD_LIBRARY_PATH=folder)
    expect_failure(done, 3, "smelt: an image cannot be written: libpng16.so.16 cannot be opened "
                            "(Debian's package libpng16-16)")


def test_images(scratch):
    """One folder, and so one cache, for all."""
    for check in (check_pixels_are_the_array_s, check_floats_are_clamped_and_rounded, check_a_pipe_takes_an_image_in_place,
                  check_without_libpng_it_says_so):
        check(scratch)
        for name in os.listdir(scratch.out):
            os.unlink(os.path.join(scratch.out, name))


run_tests(globals())
