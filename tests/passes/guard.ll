; Division by zero, INT_MIN / -1 and large shift counts have results; contraction within a statement is fixed.
; run: all guard
; expect: icmp eq i32 %y, 0
; expect: = sdiv i32 %x, %{divisor:…}
; expect: and i32 %y, 31
; expect: = shl i32 %x, %
; expect: call float @llvm.fma.f32(float %f, float %f, float %f)
; absent: sdiv i32 %x, %y
; absent: llvm.fmuladd.f32(float %f
declare float @llvm.fmuladd.f32(float, float, float)

define void @__smelt_entry(ptr %context) {
  %x = load i32, ptr %context
  %y = load i32, ptr %context
  %f = load float, ptr %context
  %quotient = sdiv i32 %x, %y
  store i32 %quotient, ptr %context
  %shifted = shl i32 %x, %y
  store i32 %shifted, ptr %context
  %fused = call float @llvm.fmuladd.f32(float %f, float %f, float %f)
  store float %fused, ptr %context
  ret void
}
