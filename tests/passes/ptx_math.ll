; Fast forms of functions become the GPU's own instructions, and divisions that may be approximate. So does rsqrt,
; whose bits stay.
; run: ptx ptx-math
; expect: call float @llvm.nvvm.ex2.approx.ftz.f(float %x)
; expect: call float @llvm.nvvm.rcp.approx.ftz.f(float %y)
; expect: call float @llvm.nvvm.rcp.approx.ftz.f(float %y)
; expect: fmul float %x
; expect: and i32 %2, -2147483648
; expect: call float @llvm.nvvm.rsqrt.approx.ftz.f
; expect: fdiv afn float %x, %exact
; run: ptx ptx-division
; expect: fdiv float %x, %x
; expect: fpext half %h to float
; expect: call float @llvm.nvvm.rcp.approx.ftz.f
; expect: fcmp one float
; expect: fptrunc float
; expect: call float asm "div.full.f32 $0, $1, $2;", "=f,f,f"(float %x, float %exact)
; absent: afn
; absent: fdiv half
define internal float @_ZN13__smelt_float9fast_exp2Ef(float %x) {
  %own = fadd float %x, 1.0
  ret float %own
}

define internal float @_ZN13__smelt_float24__regcall3__rough_divideEff(float %x, float %y) {
  %own = fdiv float %x, %y
  ret float %own
}

define internal float @_ZN13__smelt_float14rougher_divideEff(float %x, float %y) {
  %own = fdiv float %x, %y
  ret float %own
}

define internal float @_ZN13__smelt_float8copysignEff(float %x, float %y) {
  %own = fdiv float %y, %x
  ret float %own
}

define internal float @_ZN13__smelt_float5rsqrtEf(float %x) {
  %own = fadd float %x, 3.0
  ret float %own
}

define void @__smelt_entry(ptr %context) {
  %x = load float, ptr %context
  %power = call float @_ZN13__smelt_float9fast_exp2Ef(float %x)
  %exact = fdiv float %x, %x
  %h = fptrunc float %exact to half
  %halfs = fdiv half %h, %h
  %quotient = fdiv afn float %x, %exact
  %rougher = call float @_ZN13__smelt_float14rougher_divideEff(float %x, float %exact)
  %near = call float @_ZN13__smelt_float24__regcall3__rough_divideEff(float %x, float %exact)
  %signed = call float @_ZN13__smelt_float8copysignEff(float %x, float %near)
  %root = call float @_ZN13__smelt_float5rsqrtEf(float %signed)
  store float %root, ptr %context
  store float %quotient, ptr %context
  store float %power, ptr %context
  store half %halfs, ptr %context
  store float %rougher, ptr %context
  ret void
}
