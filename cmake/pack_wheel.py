"""The last step of cmake/wheel.py, with its tools: writes a wheel's files again, sorted, with fixed times and modes, and
compressed as small as deflate allows. Python's own zlib takes 3 % more, and its bytes depend on the machine.

Usage: pack_wheel.py FROM.whl TO.whl EPOCH"""
import sys
import time
import unittest.mock
import zipfile

import deflate

SMALLEST = 12


class Compressor:
    """What zipfile expects of zlib.compressobj."""

    def __init__(self, *_):
        self.pieces = []

    def compress(self, piece):
        self.pieces.append(bytes(piece))
        return b""

    def flush(self):
        return bytes(deflate.deflate_compress(b"".join(self.pieces), SMALLEST))


def entry(old, epoch):
    new = zipfile.ZipInfo(old.filename, time.gmtime(epoch)[:6])
    executable = old.external_attr >> 16 & 0o100
    new.external_attr = (0o100755 if executable else 0o100644) << 16
    new.compress_type = zipfile.ZIP_DEFLATED
    return new


def pack(source, target, epoch):
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        files = sorted((info for info in old.infolist() if not info.is_dir()), key=lambda info: info.filename)
        # zipfile has no other way to be given a compressor.
        with unittest.mock.patch("zipfile._get_compressor", Compressor):
            for info in files:
                new.writestr(entry(info, epoch), old.read(info))


if __name__ == "__main__":
    pack(sys.argv[1], sys.argv[2], int(sys.argv[3]))
