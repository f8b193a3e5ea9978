; LLVM's optimiser: arithmetic is folded, loops of few rounds are gone, and scalars of a thread stay scalars.
; run: all optimise
; expect: store i32 10, ptr %context
; expect: %a = load float
; expect: %b = load float
; absent: br
; absent: x float>
; absent: noimplicitfloat
define void @__smelt_entry(ptr %context) {
entry:
  br label %round
round:
  %n = phi i32 [ 0, %entry ], [ %next, %round ]
  %sum = phi i32 [ 0, %entry ], [ %more, %round ]
  %more = add i32 %sum, %n
  %next = add i32 %n, 1
  %again = icmp ult i32 %next, 5
  br i1 %again, label %round, label %end
end:
  store i32 %more, ptr %context
  %a.place = getelementptr float, ptr %context, i32 1
  %b.place = getelementptr float, ptr %context, i32 2
  %a = load float, ptr %a.place
  %b = load float, ptr %b.place
  %c = fadd float %a, 1.0
  %d = fadd float %b, 1.0
  store float %c, ptr %a.place
  store float %d, ptr %b.place
  ret void
}
