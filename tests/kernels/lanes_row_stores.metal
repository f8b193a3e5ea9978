// Each thread loads from and stores to rows of its own. Some loads read what earlier rounds have stored.
// for length: 1 4 9 29
// run: -b 0=arange:float32:70x30 -b 1:out:float32:70x30 -b 2:out:float32:70x30 -b 3:out:float32:70x30 -b 4:out:int16:70x30 -b 5:out:uint8:70x30 -b 7:out:float32:70x30 -b 8:out:float32:70x4 --bytes 6=int32:{length} --grid 70 --threadgroup 32
// expect buffer 1: f(i) for i in 2100: i * 2 + 1 if i % 30 < length else 0
// expect buffer 2: f(i) for i in 2100: i * 3 + 5 if i % 30 < length else i
// expect buffer 3: f(i) for i in 2100: i // 30 * 30 + 2 * (i % 30) if i % 30 <= length else i
// expect buffer 4: f(i) for i in 2100: (i + 1) * 2 if i % 30 < length else i
// expect buffer 5: f(i) for i in 2100: (i * 2 + i // 30) % 256 if i % 30 < length and i % 3 else 0
// expect buffer 8: f(i) for i in 280: (i // 4 * 30 + i % 4) * 2 if length % 8 == 1 else 0
#include <metal_stdlib>
using namespace metal;

kernel void rows(device const float *x [[buffer(0)]], device float *out [[buffer(1)]], device float *same [[buffer(2)]],
                 device float *behind [[buffer(3)]], device short *ahead [[buffer(4)]], device uchar *some [[buffer(5)]],
                 constant int &length [[buffer(6)]], device float *moved [[buffer(7)]], device float *late [[buffer(8)]],
                 uint i [[thread_position_in_grid]]) {
    for (int k = 0; k < 30; k++) same[i * 30 + k] = behind[i * 30 + k] = ahead[i * 30 + k] = i * 30 + k;
    for (int k = 0; k < length; k++) out[i * 30 + k] = x[i * 30 + k] * 2 + 1;
    for (int k = 0; k < length; k++) same[i * 30 + k] = same[i * 30 + k] * 3 + 5;
    for (int k = 0; k < length; k++) behind[i * 30 + k + 1] = behind[i * 30 + k] + 2;
    for (int k = 0; k < length; k++) ahead[i * 30 + k] = ahead[i * 30 + k + 1] * 2;
    for (int k = 0; k < length; k++)
        if ((i * 30 + k) % 3) some[i * 30 + k] = uchar(int(x[i * 30 + k]) * 2 + i);
    for (int k = 0; k < 4; k++) { // loads what was just stored, if the length is 1 or 9
        moved[i * 30 + k + 1] = (i * 30 + k) * 2;
        late[i * 4 + k] = moved[i * 30 + k + (length & 7)];
    }
}
