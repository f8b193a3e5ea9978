; Before the loop, %place is tested for the last value of %i (in `latch`), and for the value after that, which `found` may see.
; run: scalar bounds tested=1
; run: simd bounds tested=1
; expect: call i1 @__smelt_leaves_0(ptr {…}, ptr {…}, i64 0, i64 4,
; expect: call i1 @__smelt_leaves_0(ptr {…}, ptr {…}, i64 0, i64 4,
; expect: outer:
; expect: call void @__smelt_inside_0(ptr %place,
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
declare ptr @__smelt_buffer_address(i32)
@bound = internal global i64 0
define void @__smelt_entry(ptr %context) {
entry:
  %start = call ptr @__smelt_buffer_address(i32 0)
  %flags = call ptr @__smelt_buffer_address(i32 1)
  %n = load i64, ptr @bound
  br label %outer
outer:
  %i = phi i64 [ 0, %entry ], [ %i.next, %latch ]
  %place = getelementptr i32, ptr %start, i64 %i
  br label %search
search:
  %k = phi i64 [ 0, %outer ], [ %k.next, %found ]
  %flag.place = getelementptr i32, ptr %flags, i64 %k
  %flag = load i32, ptr %flag.place
  %set = icmp ne i32 %flag, 0
  br i1 %set, label %found, label %bound
found:
  %x = load i32, ptr %place
  %k.next = add i64 %k, 1
  br label %search
bound:
  %more = icmp ult i64 %i, %n
  br i1 %more, label %latch, label %end
latch:
  store i32 1, ptr %place
  %i.next = add i64 %i, 1
  br label %outer
end:
  ret void
}
