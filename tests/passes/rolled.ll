; Requests to unroll stay in the best form of the code (the plain form: tests/env/test_budgets.py).
; run: all rolled
; expect: br i1 %more, label %body, label %end, !llvm.loop !0
define void @__smelt_entry(ptr %context) {
entry:
  br label %body
body:
  %k = phi i32 [ 0, %entry ], [ %next, %body ]
  store volatile i32 %k, ptr %context
  %next = add i32 %k, 1
  %more = icmp ult i32 %next, 100
  br i1 %more, label %body, label %end, !llvm.loop !0
end:
  ret void
}
!0 = distinct !{!0, !1}
!1 = !{!"llvm.loop.unroll.full"}
