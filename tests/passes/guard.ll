; Division by zero, INT_MIN / -1 and large shift counts have results; so has a function that ends without returning a value;
; contraction within a statement is fixed. What functions return is defined, except the bits between the members of structures.
; run: all guard
; expect: icmp eq i32 %y, 0
; expect: = sdiv i32 %x, %{divisor:…}
; expect: and i32 %y, 31
; expect: = shl i32 %x, %
; expect: call float @llvm.fma.f32(float %f, float %f, float %f)
; expect: define noundef i32 @ends
; expect: store i32 0, ptr %returned
; expect: define i64 @members
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

define i32 @ends(i32 %x, i1 %c) {
  %returned = alloca i32
  br i1 %c, label %some, label %end
some:
  store i32 %x, ptr %returned
  br label %end
end:
  %value = load i32, ptr %returned
  ret i32 %value
}

define i64 @members() {
  %structure = alloca { i8, i32 }
  %both = load i64, ptr %structure
  ret i64 %both
}
