; Inlined, the kernel would be too large: scalar code keeps functions as calls, except those with intrinsics or threadgroup
; variables, and small ones. The SIMD engine, which inlines everything, refuses. PTX is left as it is.
; Parameters that may point to threadgroup variables stay parameters.
; run: scalar outlined
; expect: define internal i32 @small(i32 %x) #0
; expect: define internal i32 @large(i32 %x) #1
; expect: define internal i32 @d(i32 %x) #1
; expect: define linkonce_odr hidden i32 @table(ptr addrspace(3) %t) #1
; expect: define internal i32 @group(i32 %x) #0
; expect: attributes #0 = { alwaysinline }
; expect: attributes #1 = { noinline }
; run: simd outlined
; fails: it is too large for vector code: instructions after inlining: 264560, at most 150000
; run: ptx ptx-target+outlined
; absent: noinline
@shared = internal addrspace(3) global i32 undef
declare i32 @__smelt_simd_size()
define internal i32 @small(i32 %x) #0 {
  %x0 = mul i32 %x, 3
  %x1 = mul i32 %x0, 5
  %x2 = mul i32 %x1, 7
  ret i32 %x2
}
define internal i32 @large(i32 %x) #0 {
  %x0 = mul i32 %x, 3
  %x1 = mul i32 %x0, 5
  %x2 = mul i32 %x1, 7
  %x3 = mul i32 %x2, 9
  %x4 = mul i32 %x3, 11
  %x5 = mul i32 %x4, 13
  %x6 = mul i32 %x5, 15
  %x7 = mul i32 %x6, 17
  %x8 = mul i32 %x7, 19
  %x9 = mul i32 %x8, 21
  %x10 = mul i32 %x9, 23
  %x11 = mul i32 %x10, 25
  %x12 = mul i32 %x11, 27
  %x13 = mul i32 %x12, 29
  %x14 = mul i32 %x13, 31
  %x15 = mul i32 %x14, 33
  %x16 = mul i32 %x15, 35
  %x17 = mul i32 %x16, 37
  %x18 = mul i32 %x17, 39
  %x19 = mul i32 %x18, 41
  %x20 = mul i32 %x19, 43
  %x21 = mul i32 %x20, 45
  %x22 = mul i32 %x21, 47
  %x23 = mul i32 %x22, 49
  %x24 = mul i32 %x23, 51
  %x25 = mul i32 %x24, 53
  %x26 = mul i32 %x25, 55
  %x27 = mul i32 %x26, 57
  %x28 = mul i32 %x27, 59
  %x29 = mul i32 %x28, 61
  ret i32 %x29
}
define internal i32 @a(i32 %x) #0 {
  %x0 = call i32 @large(i32 %x)
  %x1 = call i32 @large(i32 %x0)
  %x2 = call i32 @large(i32 %x1)
  %x3 = call i32 @large(i32 %x2)
  %x4 = call i32 @large(i32 %x3)
  %x5 = call i32 @large(i32 %x4)
  %x6 = call i32 @large(i32 %x5)
  %x7 = call i32 @large(i32 %x6)
  ret i32 %x7
}
define internal i32 @b(i32 %x) #0 {
  %x0 = call i32 @a(i32 %x)
  %x1 = call i32 @a(i32 %x0)
  %x2 = call i32 @a(i32 %x1)
  %x3 = call i32 @a(i32 %x2)
  %x4 = call i32 @a(i32 %x3)
  %x5 = call i32 @a(i32 %x4)
  %x6 = call i32 @a(i32 %x5)
  %x7 = call i32 @a(i32 %x6)
  ret i32 %x7
}
define internal i32 @c(i32 %x) #0 {
  %x0 = call i32 @b(i32 %x)
  %x1 = call i32 @b(i32 %x0)
  %x2 = call i32 @b(i32 %x1)
  %x3 = call i32 @b(i32 %x2)
  %x4 = call i32 @b(i32 %x3)
  %x5 = call i32 @b(i32 %x4)
  %x6 = call i32 @b(i32 %x5)
  %x7 = call i32 @b(i32 %x6)
  ret i32 %x7
}
define internal i32 @d(i32 %x) #0 {
  %x0 = call i32 @c(i32 %x)
  %x1 = call i32 @c(i32 %x0)
  %x2 = call i32 @c(i32 %x1)
  %x3 = call i32 @c(i32 %x2)
  %x4 = call i32 @c(i32 %x3)
  %x5 = call i32 @c(i32 %x4)
  %x6 = call i32 @c(i32 %x5)
  %x7 = call i32 @c(i32 %x6)
  ret i32 %x7
}
define internal i32 @table(ptr addrspace(3) %t) #0 {
  %g = load i32, ptr addrspace(3) %t
  %x0 = mul i32 %g, 3
  %x1 = mul i32 %x0, 5
  %x2 = mul i32 %x1, 7
  %x3 = mul i32 %x2, 9
  %x4 = mul i32 %x3, 11
  %x5 = mul i32 %x4, 13
  %x6 = mul i32 %x5, 15
  %x7 = mul i32 %x6, 17
  %x8 = mul i32 %x7, 19
  %x9 = mul i32 %x8, 21
  %x10 = mul i32 %x9, 23
  %x11 = mul i32 %x10, 25
  %x12 = mul i32 %x11, 27
  %x13 = mul i32 %x12, 29
  %x14 = mul i32 %x13, 31
  %x15 = mul i32 %x14, 33
  %x16 = mul i32 %x15, 35
  %x17 = mul i32 %x16, 37
  %x18 = mul i32 %x17, 39
  %x19 = mul i32 %x18, 41
  %x20 = mul i32 %x19, 43
  %x21 = mul i32 %x20, 45
  %x22 = mul i32 %x21, 47
  %x23 = mul i32 %x22, 49
  %x24 = mul i32 %x23, 51
  %x25 = mul i32 %x24, 53
  %x26 = mul i32 %x25, 55
  %x27 = mul i32 %x26, 57
  %x28 = mul i32 %x27, 59
  %x29 = mul i32 %x28, 61
  ret i32 %x29
}
define internal i32 @group(i32 %x) #0 {
  %g = load i32, ptr addrspace(3) @shared
  %x0 = mul i32 %x, 3
  %x1 = mul i32 %x0, 5
  %x2 = mul i32 %x1, 7
  %x3 = mul i32 %x2, 9
  %x4 = mul i32 %x3, 11
  %x5 = mul i32 %x4, 13
  %x6 = mul i32 %x5, 15
  %x7 = mul i32 %x6, 17
  %x8 = mul i32 %x7, 19
  %x9 = mul i32 %x8, 21
  %x10 = mul i32 %x9, 23
  %x11 = mul i32 %x10, 25
  %x12 = mul i32 %x11, 27
  %x13 = mul i32 %x12, 29
  %x14 = mul i32 %x13, 31
  %x15 = mul i32 %x14, 33
  %x16 = mul i32 %x15, 35
  %x17 = mul i32 %x16, 37
  %x18 = mul i32 %x17, 39
  %x19 = mul i32 %x18, 41
  %x20 = mul i32 %x19, 43
  %x21 = mul i32 %x20, 45
  %x22 = mul i32 %x21, 47
  %x23 = mul i32 %x22, 49
  %x24 = mul i32 %x23, 51
  %x25 = mul i32 %x24, 53
  %x26 = mul i32 %x25, 55
  %x27 = mul i32 %x26, 57
  %x28 = mul i32 %x27, 59
  %x29 = mul i32 %x28, 61
  %sum = add i32 %x29, %g
  ret i32 %sum
}
define void @__smelt_entry(ptr %context) {
  %x = load i32, ptr %context
  %s = call i32 @small(i32 %x)
  %h = call i32 @group(i32 %s)
  %t = call i32 @table(ptr addrspace(3) @shared)
  %ht = add i32 %h, %t
  %one = call i32 @d(i32 %ht)
  %two = call i32 @d(i32 %one)
  store i32 %two, ptr %context
  ret void
}
attributes #0 = { alwaysinline }
