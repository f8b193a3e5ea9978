; What rounding of a NaN needs: nothing, if the NaN is an operand's whose lower half is 0. What only selects is not rounded.
; run: simd bfloat
; run: scalar bfloat
; expect: fmul float %
; expect: add i32 %{…}, 32767
; absent: fcmp uno
; absent: or i32
define void @__smelt_entry(ptr %context) {
  %x = load bfloat, ptr %context
  %y = fmul bfloat %x, 0xR4040
  %z = call bfloat @llvm.fabs.bf16(bfloat %y)
  store bfloat %z, ptr %context
  ret void
}
declare bfloat @llvm.fabs.bf16(bfloat)
