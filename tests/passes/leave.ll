; Lanes that leave a loop by a flag leave it where the flag is set, not at the test behind the simdgroup function.
; run: all leave,leave-inlined
; expect: round:
; expect: br i1 %stop, label %{out:…}, label %more
; expect: more:
; expect: br label %round
declare float @__smelt_simd_reduce_f32(i32, i32, float)
declare i32 @__smelt_lane()

define void @__smelt_entry(ptr %context) {
entry:
  %lane = call i32 @__smelt_lane()
  br label %round
round:
  %n = phi i32 [ 0, %entry ], [ %next, %test ]
  %stop = icmp ugt i32 %n, %lane
  br i1 %stop, label %test, label %more
more:
  %sum = call float @__smelt_simd_reduce_f32(i32 0, i32 32, float 1.0)
  store float %sum, ptr %context
  br label %test
test:
  %done = phi i1 [ true, %round ], [ false, %more ]
  %next = add i32 %n, 1
  br i1 %done, label %end, label %round
end:
  ret void
}
