; The ends of an address in any thread of the launch are compared by a function before the launch: positions end with the
; grid, or below what a condition says. The tests of a block, and their addresses, are in a block of their own.
; run: simd bounds tested=1 distinct=1
; expect: {answer:…} = call i1 @__smelt_launch_leaves(i32 0)
; expect: br i1 {answer:…}, label %tests, label %rest
; expect: tests:
; expect: call void @__smelt_inside_0(ptr {…}, i64 0, i64 4, i64 {…}, i64 {…}, i1 true,
; expect: call void @__smelt_inside_0(ptr {…}, i64 0, i64 4, i64 {…}, i64 {…}, i1 true,
; expect: rest:
; expect: define i64 @__smelt_questions(ptr
; A buffer that is written may overlap the constant one; the scalar engine has no questions.
; run: simd bounds tested=1
; run: scalar bounds tested=1 distinct=1
; absent: launch_leaves
; absent: questions
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
declare i32 @__smelt_thread_position(i32)
declare ptr @__smelt_buffer_address(i32)
define void @__smelt_entry(ptr %context) {
entry:
  %x = call i32 @__smelt_thread_position(i32 0)
  %y = call i32 @__smelt_thread_position(i32 1)
  %a = call ptr @__smelt_buffer_address(i32 0)
  %o = call ptr @__smelt_buffer_address(i32 1)
  %sizes = call ptr @__smelt_buffer_address(i32 2)
  %width = load i32, ptr %sizes, !invariant.load !0
  %is_inside = icmp ult i32 %x, %width
  br i1 %is_inside, label %within, label %end
within:
  %row = mul i32 %y, %width
  %index = add i32 %row, %x
  %wide = zext i32 %index to i64
  %from = getelementptr float, ptr %a, i64 %wide
  %v = load float, ptr %from
  %to = getelementptr float, ptr %o, i64 %wide
  store float %v, ptr %to
  br label %end
end:
  ret void
}
!0 = !{}
