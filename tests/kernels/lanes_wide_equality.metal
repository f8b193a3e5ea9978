// 64-bit integers that lanes have by constant offsets are equal in one lane at most, also where only their low 32 bits are.
// let base = [0, 5, 95, 96, 2**32, 2**32 + 7, 2**64 - 1, 2**64 - 2**32 + 5, 2**31, 2**63]
// run: -b 0:out:uint32:96 -b 1:out:uint32:96 -b 2:out:uint32:96 -b 4:out:uint32:96 --bytes 3=uint64:0,5,95,96,4294967296,4294967303,18446744073709551615,18446744069414584325,2147483648,9223372036854775808 --grid 96 --threadgroup 96
// expect buffer 0: f(i) for i in 96: sum(1 << b for b, v in enumerate(base) if v == i)
// expect buffer 1: f(i) for i in 96: sum(1 << b for b, v in enumerate(base) if (v + 3 * i) % 2**64 == i + 25)
// expect buffer 2: f(i) for i in 96: 1023 - sum(1 << b for b, v in enumerate(base) if (v - i * 2**33) % 2**64 == 5)
// expect buffer 4: f(i) for i in 96: sum(1 << b for b, v in enumerate(base) if (v - i) % 2**64 == i * 2**59 % 2**64)
#include <metal_stdlib>
using namespace metal;

kernel void equal(device uint *same [[buffer(0)]], device uint *moved [[buffer(1)]], device uint *far [[buffer(2)]],
                  constant ulong *base [[buffer(3)]], device uint *wrapped [[buffer(4)]], uint i [[thread_position_in_threadgroup]]) {
    uint a = 0, b = 0, c = 0, d = 0;
    for (uint n = 0; n < 10; n++) {
        a |= uint(base[n] == ulong(i)) << n;
        b |= uint(base[n] + ulong(i) * 3 == ulong(i) + 25) << n;
        c |= uint(base[n] - (ulong(i) << 33) != 5) << n;
        d |= uint(base[n] - ulong(i) == ulong(i) << 59) << n;
    }
    same[i] = a;
    moved[i] = b;
    far[i] = c;
    wrapped[i] = d;
}
