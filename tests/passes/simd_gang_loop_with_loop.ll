; Code with a loop of its own stays code of one gang.
; run: simd simd-gang-loop
; absent: next_gang:
define void @__smelt_entry(ptr %0) {
  br label %loop
loop:
  %i = phi i32 [ 0, %1 ], [ %next, %loop ]
  %next = add i32 %i, 1
  %goes_on = icmp ult i32 %next, 8
  br i1 %goes_on, label %loop, label %end
end:
  ret void
}
