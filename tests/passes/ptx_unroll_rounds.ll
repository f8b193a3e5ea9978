; A short loop whose number of rounds is known only at run time runs four of them at once.
; run: ptx ptx-target+ptx-unroll-rounds
; expect: load float, ptr %
; expect: load float, ptr %
; expect: load float, ptr %
; expect: load float, ptr %
define void @__smelt_entry(ptr %context, i32 %size) {
entry:
  br label %round
round:
  %i = phi i32 [ 0, %entry ], [ %next, %round ]
  %sum = phi float [ 0.0, %entry ], [ %more, %round ]
  %place = getelementptr inbounds float, ptr %context, i32 %i
  %x = load float, ptr %place
  %more = fadd float %sum, %x
  %next = add nuw nsw i32 %i, 1
  %again = icmp ult i32 %next, %size
  br i1 %again, label %round, label %end
end:
  store float %more, ptr %context
  ret void
}
