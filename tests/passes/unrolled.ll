; Loops are unrolled in a copy only, to measure them: the code stays as it is, also past the budget (100,000 instructions).
; run: simd unrolled
; run: scalar unrolled
; expect: %x0 = load volatile i32
; expect: %x7 = load volatile i32
; absent: x7.1
define void @__smelt_entry(ptr %context) {
entry:
  br label %outer0
outer0:
  %i0 = phi i32 [ 0, %entry ], [ %in0, %after0 ]
  br label %inner0
inner0:
  %j0 = phi i32 [ 0, %outer0 ], [ %jn0, %inner0 ]
  %x0 = load volatile i32, ptr %context
  %y0 = mul i32 %x0, %j0
  store volatile i32 %y0, ptr %context
  %jn0 = add nuw nsw i32 %j0, 1
  %jc0 = icmp ult i32 %jn0, 60
  br i1 %jc0, label %inner0, label %after0, !llvm.loop !0
after0:
  %in0 = add nuw nsw i32 %i0, 1
  %ic0 = icmp ult i32 %in0, 60
  br i1 %ic0, label %outer0, label %end0, !llvm.loop !1
end0:
  br label %outer1
outer1:
  %i1 = phi i32 [ 0, %end0 ], [ %in1, %after1 ]
  br label %inner1
inner1:
  %j1 = phi i32 [ 0, %outer1 ], [ %jn1, %inner1 ]
  %x1 = load volatile i32, ptr %context
  %y1 = mul i32 %x1, %j1
  store volatile i32 %y1, ptr %context
  %jn1 = add nuw nsw i32 %j1, 1
  %jc1 = icmp ult i32 %jn1, 60
  br i1 %jc1, label %inner1, label %after1, !llvm.loop !2
after1:
  %in1 = add nuw nsw i32 %i1, 1
  %ic1 = icmp ult i32 %in1, 60
  br i1 %ic1, label %outer1, label %end1, !llvm.loop !3
end1:
  br label %outer2
outer2:
  %i2 = phi i32 [ 0, %end1 ], [ %in2, %after2 ]
  br label %inner2
inner2:
  %j2 = phi i32 [ 0, %outer2 ], [ %jn2, %inner2 ]
  %x2 = load volatile i32, ptr %context
  %y2 = mul i32 %x2, %j2
  store volatile i32 %y2, ptr %context
  %jn2 = add nuw nsw i32 %j2, 1
  %jc2 = icmp ult i32 %jn2, 60
  br i1 %jc2, label %inner2, label %after2, !llvm.loop !4
after2:
  %in2 = add nuw nsw i32 %i2, 1
  %ic2 = icmp ult i32 %in2, 60
  br i1 %ic2, label %outer2, label %end2, !llvm.loop !5
end2:
  br label %outer3
outer3:
  %i3 = phi i32 [ 0, %end2 ], [ %in3, %after3 ]
  br label %inner3
inner3:
  %j3 = phi i32 [ 0, %outer3 ], [ %jn3, %inner3 ]
  %x3 = load volatile i32, ptr %context
  %y3 = mul i32 %x3, %j3
  store volatile i32 %y3, ptr %context
  %jn3 = add nuw nsw i32 %j3, 1
  %jc3 = icmp ult i32 %jn3, 60
  br i1 %jc3, label %inner3, label %after3, !llvm.loop !6
after3:
  %in3 = add nuw nsw i32 %i3, 1
  %ic3 = icmp ult i32 %in3, 60
  br i1 %ic3, label %outer3, label %end3, !llvm.loop !7
end3:
  br label %outer4
outer4:
  %i4 = phi i32 [ 0, %end3 ], [ %in4, %after4 ]
  br label %inner4
inner4:
  %j4 = phi i32 [ 0, %outer4 ], [ %jn4, %inner4 ]
  %x4 = load volatile i32, ptr %context
  %y4 = mul i32 %x4, %j4
  store volatile i32 %y4, ptr %context
  %jn4 = add nuw nsw i32 %j4, 1
  %jc4 = icmp ult i32 %jn4, 60
  br i1 %jc4, label %inner4, label %after4, !llvm.loop !8
after4:
  %in4 = add nuw nsw i32 %i4, 1
  %ic4 = icmp ult i32 %in4, 60
  br i1 %ic4, label %outer4, label %end4, !llvm.loop !9
end4:
  br label %outer5
outer5:
  %i5 = phi i32 [ 0, %end4 ], [ %in5, %after5 ]
  br label %inner5
inner5:
  %j5 = phi i32 [ 0, %outer5 ], [ %jn5, %inner5 ]
  %x5 = load volatile i32, ptr %context
  %y5 = mul i32 %x5, %j5
  store volatile i32 %y5, ptr %context
  %jn5 = add nuw nsw i32 %j5, 1
  %jc5 = icmp ult i32 %jn5, 60
  br i1 %jc5, label %inner5, label %after5, !llvm.loop !10
after5:
  %in5 = add nuw nsw i32 %i5, 1
  %ic5 = icmp ult i32 %in5, 60
  br i1 %ic5, label %outer5, label %end5, !llvm.loop !11
end5:
  br label %outer6
outer6:
  %i6 = phi i32 [ 0, %end5 ], [ %in6, %after6 ]
  br label %inner6
inner6:
  %j6 = phi i32 [ 0, %outer6 ], [ %jn6, %inner6 ]
  %x6 = load volatile i32, ptr %context
  %y6 = mul i32 %x6, %j6
  store volatile i32 %y6, ptr %context
  %jn6 = add nuw nsw i32 %j6, 1
  %jc6 = icmp ult i32 %jn6, 60
  br i1 %jc6, label %inner6, label %after6, !llvm.loop !12
after6:
  %in6 = add nuw nsw i32 %i6, 1
  %ic6 = icmp ult i32 %in6, 60
  br i1 %ic6, label %outer6, label %end6, !llvm.loop !13
end6:
  br label %outer7
outer7:
  %i7 = phi i32 [ 0, %end6 ], [ %in7, %after7 ]
  br label %inner7
inner7:
  %j7 = phi i32 [ 0, %outer7 ], [ %jn7, %inner7 ]
  %x7 = load volatile i32, ptr %context
  %y7 = mul i32 %x7, %j7
  store volatile i32 %y7, ptr %context
  %jn7 = add nuw nsw i32 %j7, 1
  %jc7 = icmp ult i32 %jn7, 60
  br i1 %jc7, label %inner7, label %after7, !llvm.loop !14
after7:
  %in7 = add nuw nsw i32 %i7, 1
  %ic7 = icmp ult i32 %in7, 60
  br i1 %ic7, label %outer7, label %end7, !llvm.loop !15
end7:
  br label %last
last:
  ret void
}
!0 = distinct !{!0, !16}
!1 = distinct !{!1, !16}
!2 = distinct !{!2, !16}
!3 = distinct !{!3, !16}
!4 = distinct !{!4, !16}
!5 = distinct !{!5, !16}
!6 = distinct !{!6, !16}
!7 = distinct !{!7, !16}
!8 = distinct !{!8, !16}
!9 = distinct !{!9, !16}
!10 = distinct !{!10, !16}
!11 = distinct !{!11, !16}
!12 = distinct !{!12, !16}
!13 = distinct !{!13, !16}
!14 = distinct !{!14, !16}
!15 = distinct !{!15, !16}
!16 = !{!"llvm.loop.unroll.full"}
