; Where %place is written, %k is 3. The test of that before the loop does not cover the load, where %k is from 4 to 7.
; run: scalar bounds tested=1
; run: simd bounds tested=1
; expect: call i1 @__smelt_leaves_0(ptr {…}, ptr {…}, i64 0, i64 4,
; expect: call i1 @__smelt_leaves_0(ptr {…}, ptr {…}, i64 0, i64 4,
; expect: call i1 @__smelt_leaves_0(ptr {…}, ptr {…}, i64 0, i64 4,
; expect: call i1 @__smelt_leaves_0(ptr {…}, ptr {…}, i64 0, i64 4,
; expect: outer:
; expect: call void @__smelt_inside_0(ptr %place,
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
declare ptr @__smelt_buffer_address(i32)
define void @__smelt_entry(ptr %context) {
entry:
  %start = call ptr @__smelt_buffer_address(i32 0)
  br label %outer
outer:
  %i = phi i64 [ 0, %entry ], [ %i.next, %written ]
  %row = mul i64 %i, 8
  br label %search
search:
  %k = phi i64 [ 7, %outer ], [ %k.next, %read ]
  %sum = add i64 %row, %k
  %place = getelementptr i32, ptr %start, i64 %sum
  %far = icmp sge i64 %k, 4
  br i1 %far, label %read, label %written
read:
  %x = load i32, ptr %place
  %k.next = add i64 %k, -1
  br label %search
written:
  store i32 1, ptr %place
  %i.next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %i.next, 9
  br i1 %more, label %outer, label %end
end:
  ret void
}
