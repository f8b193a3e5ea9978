; Fast forms of functions become the GPU's own instructions, and divisions that may be approximate.
; run: ptx ptx-math
; expect: call float @llvm.nvvm.ex2.approx.ftz.f(float %x)
; expect: fdiv afn float %x, %exact
; run: ptx ptx-division
; expect: fdiv float %x, %x
; expect: call float asm "div.full.f32 $0, $1, $2;", "=f,f,f"(float %x, float %exact)
; absent: afn
define internal float @_ZN13__smelt_float9fast_exp2Ef(float %x) {
  %own = fadd float %x, 1.0
  ret float %own
}

define void @__smelt_entry(ptr %context) {
  %x = load float, ptr %context
  %power = call float @_ZN13__smelt_float9fast_exp2Ef(float %x)
  %exact = fdiv float %x, %x
  %quotient = fdiv afn float %x, %exact
  store float %quotient, ptr %context
  store float %power, ptr %context
  ret void
}
