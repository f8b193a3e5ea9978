; Products with powers of two are not rounded, and what uses them takes their 32 bits. A choice among computed numbers is
; one of floats. An exact double of a NaN or of infinity is one, too.
; run: simd bfloat
; run: scalar bfloat
; expect: fmul float %{…}, 2.000000e+00
; expect: fmul float %{…}, -4.000000e+00
; expect: select i1 %{…}, float
; absent: 32767
define void @__smelt_entry(ptr %context) {
  %x = load bfloat, ptr %context
  %y = fmul bfloat %x, 0xR4000
  %z = fmul bfloat %y, 0xRC080
  %n = fcmp ogt bfloat %z, %x
  %c = select i1 %n, bfloat %z, bfloat %x
  store bfloat %c, ptr %context
  ret void
}
