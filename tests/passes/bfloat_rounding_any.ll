; A float that was loaded may be a NaN whose rounding would carry: it is made quiet.
; run: simd bfloat
; run: scalar bfloat
; expect: add i32 %{…}, 32767
; expect: fcmp uno float
define void @__smelt_entry(ptr %context) {
  %x = load float, ptr %context
  %y = fmul float %x, 3.0
  %z = fptrunc float %y to bfloat
  store bfloat %z, ptr %context
  ret void
}
