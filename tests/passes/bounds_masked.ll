; (x << 6) / 2 of unsigned numbers becomes a shift and a mask that removes the highest bit. Such an index is linear in the loop's
; counter if it does not wrap around in the mask's 31 bits between the first round and the last: tested before the loop. An index whose
; mask also removes a low bit is tested in each round.
; run: simd bounds tested=1
; expect: icmp ugt i32 %{first:…}, %{last:…}
; expect: icmp ugt i64 %{…}, 2147483647
; expect: call i1 @__smelt_leaves_0(ptr {…}, ptr {…}, i64 0, i64 4, {…}, i1 {…})
; expect: rounds:
; expect: call void @__smelt_inside_0(ptr %place, i64 0, i64 4, i64 %{…}, i64 %{…}, i1 %{…}
; expect: call void @__smelt_inside_0(ptr %other, i64 0, i64 4, i64 %{…}, i64 %{…}, i1 true
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
declare ptr @__smelt_buffer_address(i32)
declare i32 @__smelt_threadgroup_position(i32)
define void @__smelt_entry(ptr %context) {
entry:
  %start = call ptr @__smelt_buffer_address(i32 0)
  %second = call ptr @__smelt_buffer_address(i32 1)
  %row = call i32 @__smelt_threadgroup_position(i32 0)
  %count = call i32 @__smelt_threadgroup_position(i32 1)
  br label %rounds
rounds:
  %k = phi i32 [ 0, %entry ], [ %k.next, %rounds ]
  %number = add i32 %row, %k
  %shifted = shl i32 %number, 5
  %index = and i32 %shifted, 2147483616
  %wide = zext i32 %index to i64
  %place = getelementptr i32, ptr %start, i64 %wide
  %x = load i32, ptr %place
  store i32 %x, ptr %place
  %some = and i32 %shifted, 2147483584
  %wide2 = zext i32 %some to i64
  %other = getelementptr i32, ptr %second, i64 %wide2
  store i32 %x, ptr %other
  %k.next = add nuw i32 %k, 1
  %more = icmp ult i32 %k.next, %count
  br i1 %more, label %rounds, label %end
end:
  ret void
}
