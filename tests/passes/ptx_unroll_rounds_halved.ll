; A loop whose counter is halved in each round, four to nine times, becomes as many copies. Its number of rounds is known once the loop
; around it is unrolled.
; run: ptx ptx-target+ptx-unroll-rounds
; expect: getelementptr inbounds i8, ptr %context, i64 32
; expect: getelementptr inbounds i8, ptr %context, i64 1024
; absent: phi
define void @__smelt_entry(ptr %context) {
entry:
  br label %outer
outer:
  %k = phi i32 [ 8, %entry ], [ %k.next, %outer.end ]
  %outer.sum = phi float [ 0.0, %entry ], [ %more, %outer.end ]
  br label %round
round:
  %step = phi i32 [ %k, %outer ], [ %half, %round ]
  %sum = phi float [ %outer.sum, %outer ], [ %more, %round ]
  %place = getelementptr inbounds float, ptr %context, i32 %step
  %x = load float, ptr %place
  %square = fmul float %x, %sum
  %more = fadd float %square, 1.0
  %half = lshr i32 %step, 1
  %again = icmp ugt i32 %step, 1
  br i1 %again, label %round, label %outer.end
outer.end:
  %k.next = shl nuw nsw i32 %k, 1
  %outer.again = icmp ult i32 %k, 256
  br i1 %outer.again, label %outer, label %end
end:
  store float %more, ptr %context
  ret void
}
