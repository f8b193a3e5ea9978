; One question before the loops, with the ends of a truncated counter and of an inner one's part, both times an unknown factor.
; run: scalar bounds tested=1
; run: simd bounds tested=1
; expect: call i1 @__smelt_leaves_0(ptr {…}, ptr {…}, i64 0, i64 4, {…}, i1 {…})
; expect: call i1 @__smelt_leaves_0(ptr {…}, ptr {…}, i64 0, i64 4, {…}, i1 {…})
; expect: outer:
; expect: call void @__smelt_inside_0(ptr %place, i64 0, i64 4, i64 %0, i64 %1, i1 %{…}
; absent: i1 true
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
declare ptr @__smelt_buffer_address(i32)
declare i32 @__smelt_threadgroup_position(i32)
define void @__smelt_entry(ptr %context) {
entry:
  %start = call ptr @__smelt_buffer_address(i32 0)
  %width = call i32 @__smelt_threadgroup_position(i32 0)
  %height = call i32 @__smelt_threadgroup_position(i32 1)
  br label %outer
outer:
  %i = phi i64 [ 0, %entry ], [ %i.next, %latch ]
  %number = trunc i64 %i to i32
  %row = mul i32 %number, %height
  br label %inner
inner:
  %k = phi i32 [ 0, %outer ], [ %k.next, %inner ]
  %part = lshr i32 %k, 2
  %sum = add i32 %row, %part
  %index = mul i32 %sum, %width
  %wide = zext i32 %index to i64
  %place = getelementptr i32, ptr %start, i64 %wide
  %x = load i32, ptr %place
  %y = add i32 %x, 1
  store i32 %y, ptr %place
  %k.next = add nuw nsw i32 %k, 1
  %k.more = icmp ult i32 %k.next, 16
  br i1 %k.more, label %inner, label %latch
latch:
  %i.next = add nuw nsw i64 %i, 1
  %i.more = icmp ult i64 %i.next, 9
  br i1 %i.more, label %outer, label %end
end:
  ret void
}
