; Products with powers of two, of NaNs and infinities too, are exact: they are not rounded, and their uses take the 32 bits.
; A select of computed bfloats becomes a select of floats.
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
