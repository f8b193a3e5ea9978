; A loop down to the least 64-bit number stays a loop: its number of rounds overflows.
; run: ptx ptx-target+ptx-unroll-rounds
; expect: phi i64
define void @__smelt_entry(ptr %context) {
entry:
  br label %round
round:
  %i = phi i64 [ 0, %entry ], [ %next, %rest ]
  %x = load i32, ptr %context
  %found = icmp eq i32 %x, 3
  br i1 %found, label %end, label %rest
rest:
  %more = add i32 %x, 2
  store i32 %more, ptr %context
  %next = add nsw i64 %i, -1
  %again = icmp ne i64 %next, -9223372036854775808
  br i1 %again, label %round, label %end
end:
  ret void
}
