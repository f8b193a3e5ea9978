; A loop of 16 rounds of 46 instructions stays a loop: its copies would have more than 512.
; run: ptx ptx-target+ptx-unroll-rounds
; expect: phi i32
define void @__smelt_entry(ptr %context) {
entry:
  br label %round
round:
  %i = phi i32 [ 0, %entry ], [ %next, %round ]
  %sum = phi float [ 0.0, %entry ], [ %more, %round ]
  %place = getelementptr inbounds float, ptr %context, i32 %i
  %x0 = load float, ptr %place
  %y = load float, ptr %context
  %x1 = fmul float %x0, %y
  %x2 = fmul float %x1, %y
  %x3 = fmul float %x2, %y
  %x4 = fmul float %x3, %y
  %x5 = fmul float %x4, %y
  %x6 = fmul float %x5, %y
  %x7 = fmul float %x6, %y
  %x8 = fmul float %x7, %y
  %x9 = fmul float %x8, %y
  %x10 = fmul float %x9, %y
  %x11 = fmul float %x10, %y
  %x12 = fmul float %x11, %y
  %x13 = fmul float %x12, %y
  %x14 = fmul float %x13, %y
  %x15 = fmul float %x14, %y
  %x16 = fmul float %x15, %y
  %x17 = fmul float %x16, %y
  %x18 = fmul float %x17, %y
  %x19 = fmul float %x18, %y
  %x20 = fmul float %x19, %y
  %x21 = fmul float %x20, %y
  %x22 = fmul float %x21, %y
  %x23 = fmul float %x22, %y
  %x24 = fmul float %x23, %y
  %x25 = fmul float %x24, %y
  %x26 = fmul float %x25, %y
  %x27 = fmul float %x26, %y
  %x28 = fmul float %x27, %y
  %x29 = fmul float %x28, %y
  %x30 = fmul float %x29, %y
  %x31 = fmul float %x30, %y
  %x32 = fmul float %x31, %y
  %x33 = fmul float %x32, %y
  %x34 = fmul float %x33, %y
  %x35 = fmul float %x34, %y
  %x36 = fmul float %x35, %y
  %x37 = fmul float %x36, %y
  %x38 = fmul float %x37, %y
  %x39 = fmul float %x38, %y
  %x40 = fmul float %x39, %y
  %more = fadd float %sum, %x40
  %next = add nsw i32 %i, 1
  %again = icmp ne i32 %next, 16
  br i1 %again, label %round, label %end
end:
  store float %more, ptr %context
  ret void
}
