; The same, where the kernel is certainly too large for vectors with everything inlined. Scalar code keeps functions as
; calls, except small ones and those whose loops might not end: only the entry polls the stop flag. The SIMD engine refuses.
; run: scalar simplified
; expect: define internal i32 @endless(i32 %x) #0
; expect: define internal i32 @middle(i32 %x) #1
; expect: define internal i32 @top(i32 %x) #1
; expect: attributes #0 = { alwaysinline }
; expect: attributes #1 = { noinline }
; run: simd simplified
; fails: it is too large for vector code: instructions of a thread, not optimised: 82131, at most 37500
define internal i32 @big(i32 %x) #0 {
  %x0 = add i32 %x, 1
  %m0 = mul i32 %x0, %x0
  %x1 = add i32 %m0, 3
  %m1 = mul i32 %x1, %x1
  %x2 = add i32 %m1, 10
  %m2 = mul i32 %x2, %x2
  %x3 = add i32 %m2, 17
  %m3 = mul i32 %x3, %x3
  %x4 = add i32 %m3, 24
  %m4 = mul i32 %x4, %x4
  %x5 = add i32 %m4, 31
  %m5 = mul i32 %x5, %x5
  %x6 = add i32 %m5, 38
  %m6 = mul i32 %x6, %x6
  %x7 = add i32 %m6, 45
  %m7 = mul i32 %x7, %x7
  %x8 = add i32 %m7, 52
  %m8 = mul i32 %x8, %x8
  %x9 = add i32 %m8, 59
  %m9 = mul i32 %x9, %x9
  %x10 = add i32 %m9, 66
  %m10 = mul i32 %x10, %x10
  %x11 = add i32 %m10, 73
  %m11 = mul i32 %x11, %x11
  %x12 = add i32 %m11, 80
  %m12 = mul i32 %x12, %x12
  %x13 = add i32 %m12, 87
  %m13 = mul i32 %x13, %x13
  %x14 = add i32 %m13, 94
  %m14 = mul i32 %x14, %x14
  %x15 = add i32 %m14, 101
  %m15 = mul i32 %x15, %x15
  %x16 = add i32 %m15, 108
  %m16 = mul i32 %x16, %x16
  %x17 = add i32 %m16, 115
  %m17 = mul i32 %x17, %x17
  %x18 = add i32 %m17, 122
  %m18 = mul i32 %x18, %x18
  %x19 = add i32 %m18, 129
  %m19 = mul i32 %x19, %x19
  %x20 = add i32 %m19, 136
  %m20 = mul i32 %x20, %x20
  %x21 = add i32 %m20, 143
  %m21 = mul i32 %x21, %x21
  %x22 = add i32 %m21, 150
  %m22 = mul i32 %x22, %x22
  %x23 = add i32 %m22, 157
  %m23 = mul i32 %x23, %x23
  %x24 = add i32 %m23, 164
  %m24 = mul i32 %x24, %x24
  %x25 = add i32 %m24, 171
  %m25 = mul i32 %x25, %x25
  %x26 = add i32 %m25, 178
  %m26 = mul i32 %x26, %x26
  %x27 = add i32 %m26, 185
  %m27 = mul i32 %x27, %x27
  %x28 = add i32 %m27, 192
  %m28 = mul i32 %x28, %x28
  %x29 = add i32 %m28, 199
  %m29 = mul i32 %x29, %x29
  %x30 = add i32 %m29, 206
  %m30 = mul i32 %x30, %x30
  %x31 = add i32 %m30, 213
  %m31 = mul i32 %x31, %x31
  %x32 = add i32 %m31, 220
  %m32 = mul i32 %x32, %x32
  %x33 = add i32 %m32, 227
  %m33 = mul i32 %x33, %x33
  %x34 = add i32 %m33, 234
  %m34 = mul i32 %x34, %x34
  %x35 = add i32 %m34, 241
  %m35 = mul i32 %x35, %x35
  %x36 = add i32 %m35, 248
  %m36 = mul i32 %x36, %x36
  %x37 = add i32 %m36, 255
  %m37 = mul i32 %x37, %x37
  %x38 = add i32 %m37, 262
  %m38 = mul i32 %x38, %x38
  %x39 = add i32 %m38, 269
  %m39 = mul i32 %x39, %x39
  %x40 = add i32 %m39, 276
  ret i32 %x40
}
define internal i32 @endless(i32 %x) #0 {
entry:
  br label %round
round:
  %i = phi i32 [ %x, %entry ], [ %next, %round ]
  %a0 = mul i32 %i, 3
  %a1 = mul i32 %a0, 5
  %a2 = mul i32 %a1, 7
  %a3 = mul i32 %a2, 9
  %a4 = mul i32 %a3, 11
  %a5 = mul i32 %a4, 13
  %a6 = mul i32 %a5, 15
  %a7 = mul i32 %a6, 17
  %a8 = mul i32 %a7, 19
  %a9 = mul i32 %a8, 21
  %a10 = mul i32 %a9, 23
  %a11 = mul i32 %a10, 25
  %a12 = mul i32 %a11, 27
  %a13 = mul i32 %a12, 29
  %a14 = mul i32 %a13, 31
  %a15 = mul i32 %a14, 33
  %a16 = mul i32 %a15, 35
  %a17 = mul i32 %a16, 37
  %a18 = mul i32 %a17, 39
  %a19 = mul i32 %a18, 41
  %a20 = mul i32 %a19, 43
  %a21 = mul i32 %a20, 45
  %a22 = mul i32 %a21, 47
  %a23 = mul i32 %a22, 49
  %a24 = mul i32 %a23, 51
  %a25 = mul i32 %a24, 53
  %a26 = mul i32 %a25, 55
  %a27 = mul i32 %a26, 57
  %a28 = mul i32 %a27, 59
  %a29 = mul i32 %a28, 61
  %next = add i32 %a29, 1
  %again = icmp ugt i32 %next, 77
  br i1 %again, label %round, label %end
end:
  ret i32 %next
}
define internal i32 @middle(i32 %x) #0 {
  %x1 = call i32 @big(i32 %x)
  %x2 = call i32 @big(i32 %x1)
  %x3 = call i32 @big(i32 %x2)
  %x4 = call i32 @big(i32 %x3)
  %x5 = call i32 @big(i32 %x4)
  %x6 = call i32 @big(i32 %x5)
  %x7 = call i32 @big(i32 %x6)
  %x8 = call i32 @big(i32 %x7)
  %x9 = call i32 @big(i32 %x8)
  %x10 = call i32 @big(i32 %x9)
  %x11 = call i32 @big(i32 %x10)
  %x12 = call i32 @big(i32 %x11)
  %x13 = call i32 @big(i32 %x12)
  %x14 = call i32 @big(i32 %x13)
  %x15 = call i32 @big(i32 %x14)
  %x16 = call i32 @big(i32 %x15)
  ret i32 %x16
}
define internal i32 @top(i32 %x) #0 {
  %x1 = call i32 @middle(i32 %x)
  %x2 = call i32 @middle(i32 %x1)
  %x3 = call i32 @middle(i32 %x2)
  %x4 = call i32 @middle(i32 %x3)
  %x5 = call i32 @middle(i32 %x4)
  %x6 = call i32 @middle(i32 %x5)
  %x7 = call i32 @middle(i32 %x6)
  %x8 = call i32 @middle(i32 %x7)
  %x9 = call i32 @middle(i32 %x8)
  %x10 = call i32 @middle(i32 %x9)
  %x11 = call i32 @middle(i32 %x10)
  %x12 = call i32 @middle(i32 %x11)
  %x13 = call i32 @middle(i32 %x12)
  %x14 = call i32 @middle(i32 %x13)
  %x15 = call i32 @middle(i32 %x14)
  %x16 = call i32 @middle(i32 %x15)
  ret i32 %x16
}
define void @__smelt_entry(ptr %context) {
  %given = load i32, ptr %context
  %lane = call i32 @endless(i32 %given)
  %a0 = call i32 @top(i32 %lane)
  %a1 = call i32 @top(i32 %a0)
  %a2 = call i32 @top(i32 %a1)
  %a3 = call i32 @top(i32 %a2)
  store i32 %a3, ptr %context
  ret void
}
attributes #0 = { alwaysinline }
