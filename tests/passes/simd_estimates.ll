; rsqrt begins with the CPU's estimate where vectors fill registers of 512 bits. The mark is removed in any case, and
; the same quotient without it stays.
; run: simd simd-estimates cpu=x86-64-v4
; expect: %{estimate:…} = call <16 x float> @llvm.x86.avx512.rsqrt14.ps.512(<16 x float> %x
; expect: %{root:…} = select <16 x i1> {…}, <16 x float> {…}, <16 x float> %{estimate:…}
; expect: store <16 x float> %{root:…}, ptr %context
; expect: store <16 x float> %quotient, ptr %context
; expect: store float %quotient.of_one, ptr %context
; absent: @llvm.arithmetic.fence.v16f32(<16 x float> %
; run: simd simd-estimates cpu=x86-64-v3
; expect: store <16 x float> %quotient, ptr %context
; expect: store <16 x float> %quotient, ptr %context
; absent: call <16 x float> @llvm.x86
; run: simd simd-mark-estimates cpu=x86-64-v4
; expect: define internal float @_ZN13__smelt_float11rough_rsqrtEf(float %x)
; expect: %{marked:…} = call float @llvm.arithmetic.fence.f32(float %quotient)
; expect: ret float %{marked:…}
declare <16 x float> @llvm.sqrt.v16f32(<16 x float>)
declare <16 x float> @llvm.arithmetic.fence.v16f32(<16 x float>)
declare float @llvm.sqrt.f32(float)
declare float @llvm.arithmetic.fence.f32(float)
define void @__smelt_entry(ptr %context) {
  %x = load <16 x float>, ptr %context
  %root = call <16 x float> @llvm.sqrt.v16f32(<16 x float> %x)
  %quotient = fdiv <16 x float> <float 1.0, float 1.0, float 1.0, float 1.0, float 1.0, float 1.0, float 1.0, float 1.0, float 1.0, float 1.0, float 1.0, float 1.0, float 1.0, float 1.0, float 1.0, float 1.0>, %root
  %marked = call <16 x float> @llvm.arithmetic.fence.v16f32(<16 x float> %quotient)
  store <16 x float> %marked, ptr %context
  store <16 x float> %quotient, ptr %context
  %one = load float, ptr %context
  %root.of_one = call float @llvm.sqrt.f32(float %one)
  %quotient.of_one = fdiv float 1.0, %root.of_one
  %marked.of_one = call float @llvm.arithmetic.fence.f32(float %quotient.of_one)
  store float %marked.of_one, ptr %context
  ret void
}
define internal float @_ZN13__smelt_float11rough_rsqrtEf(float %x) {
  %root = call float @llvm.sqrt.f32(float %x)
  %quotient = fdiv float 1.0, %root
  ret float %quotient
}
