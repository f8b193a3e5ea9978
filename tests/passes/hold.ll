; Where some lanes of a round perform a simdgroup function, the condition to leave the loop is hidden from LLVM.
; run: all hold
; expect: %{held:…} = call i1 @__smelt_held_{…}(i1 %leave
; expect: br i1 %{held:…}, label %end, label %round
declare float @__smelt_simd_reduce_f32(i32, i32, float)
declare i32 @__smelt_lane()

define void @__smelt_entry(ptr %context) {
entry:
  %lane = call i32 @__smelt_lane()
  br label %round
round:
  %n = phi i32 [ 0, %entry ], [ %next, %test ]
  %next = add i32 %n, 1
  %some = icmp ugt i32 %n, %lane
  br i1 %some, label %sum, label %test
sum:
  %total = call float @__smelt_simd_reduce_f32(i32 0, i32 32, float 1.0)
  store float %total, ptr %context
  br label %test
test:
  %leave = icmp ugt i32 %n, %lane
  br i1 %leave, label %end, label %round
end:
  ret void
}
