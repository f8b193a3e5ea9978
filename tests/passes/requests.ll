; LLVM meets a request for all rounds, or for a number, whatever the size. A request for 100,000 rounds goes, so
; do a number as large and all rounds of loops around one of 1,000; others stay. All rounds of an unknown number
; become as many as LLVM takes at most.
; run: all rolled+requests
; expect: br i1 %more.few, {…}, !llvm.loop
; expect: br i1 %more.unknown, {…}, !llvm.loop
; expect: br i1 %more.inner, {…}, !llvm.loop
; expect: !"llvm.loop.unroll.runtime.disable"
; absent: br i1 %more.many, {…}, !llvm.loop
; absent: br i1 %more.counted, {…}, !llvm.loop
; absent: br i1 %more.outer, {…}, !llvm.loop
define void @__smelt_entry(ptr %context) {
entry:
  %n = load i32, ptr %context
  br label %many
many:
  %a = phi i32 [ 0, %entry ], [ %a.next, %many ]
  store volatile i32 %a, ptr %context
  %a.next = add i32 %a, 1
  %more.many = icmp ult i32 %a.next, 100000
  br i1 %more.many, label %many, label %counted, !llvm.loop !0
counted:
  %b = phi i32 [ 0, %many ], [ %b.next, %counted ]
  store volatile i32 %b, ptr %context
  %b.next = add i32 %b, 1
  %more.counted = icmp ult i32 %b.next, %n
  br i1 %more.counted, label %counted, label %few, !llvm.loop !2
few:
  %c = phi i32 [ 0, %counted ], [ %c.next, %few ]
  store volatile i32 %c, ptr %context
  %c.next = add i32 %c, 1
  %more.few = icmp ult i32 %c.next, 1000
  br i1 %more.few, label %few, label %unknown, !llvm.loop !4
unknown:
  %d = phi float [ 0.0, %few ], [ %d.next, %unknown ]
  store volatile float %d, ptr %context
  %d.next = fadd float %d, 2.0
  %more.unknown = fcmp ult float %d.next, 100000.0
  br i1 %more.unknown, label %unknown, label %outer, !llvm.loop !5
outer:
  %e = phi i32 [ 0, %unknown ], [ %e.next, %outer.end ]
  br label %inner
inner:
  %f = phi i32 [ 0, %outer ], [ %f.next, %inner ]
  store volatile i32 %f, ptr %context
  %f.next = add i32 %f, 1
  %more.inner = icmp ult i32 %f.next, 1000
  br i1 %more.inner, label %inner, label %outer.end, !llvm.loop !6
outer.end:
  %e.next = add i32 %e, 1
  %more.outer = icmp ult i32 %e.next, 1000
  br i1 %more.outer, label %outer, label %end, !llvm.loop !7
end:
  ret void
}
!0 = distinct !{!0, !1}
!1 = !{!"llvm.loop.unroll.full"}
!2 = distinct !{!2, !3}
!3 = !{!"llvm.loop.unroll.count", i32 100000}
!4 = distinct !{!4, !1}
!5 = distinct !{!5, !1}
!6 = distinct !{!6, !1}
!7 = distinct !{!7, !1}
