; A test before each access of an argument: one for neighbours, and in a loop one question before it.
; run: scalar bounds tested=1
; run: simd bounds tested=1
; expect: call i1 @__smelt_leaves_0(ptr %2, ptr %3, i64 0, i64 8,
; expect: call void @__smelt_inside_0(ptr %place, i64 0, i64 8,
; expect: %first = load float
; expect: store float
; absent: ptr %behind, i64 0
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
declare ptr @__smelt_buffer_address(i32)
define void @__smelt_entry(ptr %context) {
entry:
  %array = call ptr @__smelt_buffer_address(i32 0)
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %place = getelementptr float, ptr %array, i64 %i
  %first = load float, ptr %place
  %behind = getelementptr float, ptr %place, i64 1
  store float %first, ptr %behind
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, 64
  br i1 %more, label %loop, label %end
end:
  ret void
}
