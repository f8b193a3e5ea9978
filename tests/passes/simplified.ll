; A function with a loop over private variables, of which the kernel has 512 copies once all is inlined, is optimised on
; its own: the loop is unrolled, and the variables are registers. Functions that use an intrinsic stay as they are, as do
; those that are large with all they call.
; run: simd simplified
; run: scalar simplified
; run: ptx ptx-target+simplified
; expect: define internal i32 @middle(i32 %x) #0
; expect: mul i32 %x, %x
; absent: br label %round
; absent: call i32 @leaf
; expect: define internal i32 @top(i32 %x) #0
; expect: call i32 @middle(i32 %x)
; expect: define internal i32 @lane(i32 %x) #0
; expect: alloca
; expect: call i32 @top(i32 %lane)
declare i32 @__smelt_thread_index_in_simdgroup()
define internal i32 @leaf(i32 %x) #0 {
entry:
  %sum = alloca i32
  %i = alloca i32
  store i32 %x, ptr %sum
  store i32 0, ptr %i
  br label %round
round:
  %a0 = load i32, ptr %sum
  %b0 = mul i32 %a0, %a0
  %c0 = add i32 %b0, 0
  store i32 %c0, ptr %sum
  %a1 = load i32, ptr %sum
  %b1 = mul i32 %a1, %a1
  %c1 = add i32 %b1, 1
  store i32 %c1, ptr %sum
  %a2 = load i32, ptr %sum
  %b2 = mul i32 %a2, %a2
  %c2 = add i32 %b2, 2
  store i32 %c2, ptr %sum
  %a3 = load i32, ptr %sum
  %b3 = mul i32 %a3, %a3
  %c3 = add i32 %b3, 3
  store i32 %c3, ptr %sum
  %i0 = load i32, ptr %i
  %i1 = add i32 %i0, 1
  store i32 %i1, ptr %i
  %again = icmp ult i32 %i1, 3
  br i1 %again, label %round, label %end
end:
  %result = load i32, ptr %sum
  ret i32 %result
}
define internal i32 @middle(i32 %x) #0 {
  %x1 = call i32 @leaf(i32 %x)
  %x2 = call i32 @leaf(i32 %x1)
  %x3 = call i32 @leaf(i32 %x2)
  %x4 = call i32 @leaf(i32 %x3)
  %x5 = call i32 @leaf(i32 %x4)
  %x6 = call i32 @leaf(i32 %x5)
  %x7 = call i32 @leaf(i32 %x6)
  %x8 = call i32 @leaf(i32 %x7)
  %x9 = call i32 @leaf(i32 %x8)
  %x10 = call i32 @leaf(i32 %x9)
  %x11 = call i32 @leaf(i32 %x10)
  %x12 = call i32 @leaf(i32 %x11)
  %x13 = call i32 @leaf(i32 %x12)
  %x14 = call i32 @leaf(i32 %x13)
  %x15 = call i32 @leaf(i32 %x14)
  %x16 = call i32 @leaf(i32 %x15)
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
define internal i32 @lane(i32 %x) #0 {
  %kept = alloca i32
  store i32 %x, ptr %kept
  %index = call i32 @__smelt_thread_index_in_simdgroup()
  %same = load i32, ptr %kept
  %sum = add i32 %same, %index
  ret i32 %sum
}
define void @__smelt_entry(ptr %context) {
  %given = load i32, ptr %context
  %lane = call i32 @lane(i32 %given)
  %a = call i32 @top(i32 %lane)
  %b = call i32 @top(i32 %a)
  store i32 %b, ptr %context
  ret void
}
attributes #0 = { alwaysinline }
