; A block of ordinary length stays whole (long ones: tests/env/test_budgets.py).
; run: scalar cut
; run: simd cut
; run: ptx cut
; expect: br label %more
; expect: ret void
; absent: absent
define void @__smelt_entry(ptr %context) {
  store i32 1, ptr %context
  br label %more
more:
  store i32 2, ptr %context
  ret void
}
