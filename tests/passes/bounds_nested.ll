; One question before the outer loop, by the ends of the inner loop's counter; and none for what lies between accesses of each round.
; run: scalar bounds tested=1
; run: simd bounds tested=1
; expect: call i1 @__smelt_leaves_0(ptr {…}, ptr {…}, i64 0, i64 4, {…}, i1 {…})
; expect: call i1 @__smelt_leaves_0(ptr {…}, ptr {…}, i64 0, i64 4, {…}, i1 {…})
; expect: = or i1 {…}, !smelt.sure
; expect: outer:
; expect: call void @__smelt_inside_0(ptr %place, i64 0, i64 4, i64 %0, i64 %1, i1 %{…}
; expect: call void @__smelt_inside_0(ptr %byte, i64 0, i64 1, i64 %0, i64 %1, i1 %{…}
; absent: i1 true
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
declare ptr @__smelt_buffer_address(i32)
define void @__smelt_entry(ptr %context) {
entry:
  %start = call ptr @__smelt_buffer_address(i32 0)
  br label %outer
outer:
  %i = phi i64 [ 0, %entry ], [ %i.next, %latch ]
  %offset = mul i64 %i, 64
  %row = getelementptr i8, ptr %start, i64 %offset
  br label %inner
inner:
  %k = phi i64 [ 0, %outer ], [ %k.next, %after ]
  %part = lshr i64 %k, 2
  %place = getelementptr i32, ptr %row, i64 %part
  %x = load i32, ptr %place
  %some = icmp eq i32 %x, 77
  br i1 %some, label %sometimes, label %after
sometimes:
  %byte = getelementptr i8, ptr %row, i64 5
  %y = load i8, ptr %byte
  store i32 1, ptr %place
  br label %after
after:
  %k.next = add nuw nsw i64 %k, 1
  %k.more = icmp ult i64 %k.next, 16
  br i1 %k.more, label %inner, label %latch
latch:
  %i.next = add nuw nsw i64 %i, 1
  %i.more = icmp ult i64 %i.next, 9
  br i1 %i.more, label %outer, label %end
end:
  ret void
}
