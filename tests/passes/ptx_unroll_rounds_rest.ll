; Rounds with a guard, whose number is known only at run time: eight at once, and then up to seven in a row, not in a loop.
; run: ptx ptx-target+ptx-unroll-rounds
; expect: and i32 %n, 7
; expect: load float
; expect: load float
; expect: load float
; expect: load float
; expect: br i1 %{…}, label %end.loopexit.unr-lcssa, label %round
; expect: load float
; expect: load float
; expect: load float
; absent: llvm.loop
define void @__smelt_entry(ptr %context, i32 %n, i32 %least) {
entry:
  %some = icmp sgt i32 %n, 0
  br i1 %some, label %round, label %end
round:
  %i = phi i32 [ 0, %entry ], [ %next, %join ]
  %sum = phi float [ 0.0, %entry ], [ %left, %join ]
  %in = icmp sgt i32 %i, %least
  br i1 %in, label %guarded, label %join
guarded:
  %place = getelementptr inbounds float, ptr %context, i32 %i
  %x = load float, ptr %place
  %more = fadd float %sum, %x
  br label %join
join:
  %left = phi float [ %more, %guarded ], [ %sum, %round ]
  %next = add nuw nsw i32 %i, 1
  %again = icmp slt i32 %next, %n
  br i1 %again, label %round, label %end
end:
  %all = phi float [ 0.0, %entry ], [ %left, %join ]
  store float %all, ptr %context
  ret void
}
