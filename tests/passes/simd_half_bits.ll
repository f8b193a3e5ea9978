; CPUs without F16C convert vectors of half by integer operations; single halves and doubles stay as they are. Others have instructions.
; run: simd simd-half-bits cpu=x86-64
; expect: bitcast <4 x half> %x to <4 x i16>
; expect: zext <4 x i16> %{…} to <4 x i32>
; expect: trunc <4 x i32> %{…} to <4 x i16>
; expect: fpext half %one to float
; expect: fptrunc <2 x double> %wide to <2 x half>
; absent: fpext <4 x half>
; absent: fptrunc <4 x float>
; run: simd simd-half-bits cpu=x86-64-v3
; expect: fpext <4 x half> %x to <4 x float>
; expect: fptrunc <4 x float>
; absent: bitcast
define void @__smelt_entry(ptr %context) {
  %x = load <4 x half>, ptr %context
  %y = fpext <4 x half> %x to <4 x float>
  %z = fadd <4 x float> %y, %y
  %h = fptrunc <4 x float> %z to <4 x half>
  store <4 x half> %h, ptr %context
  %one = load half, ptr %context
  %f = fpext half %one to float
  store float %f, ptr %context
  %wide = load <2 x double>, ptr %context
  %narrow = fptrunc <2 x double> %wide to <2 x half>
  store <2 x half> %narrow, ptr %context
  ret void
}
