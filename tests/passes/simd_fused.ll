; Four lanes are multiplied and added by one call; a scalar is left to the code generator.
; run: simd simd-fused cpu=x86-64
; expect: %{fused:…} = call <4 x float> @smelt_runtime_fma_4(<4 x float> %x, <4 x float> %x, <4 x float> %x)
; expect: store <4 x float> %{fused:…}, ptr %context
; expect: %one = call float @llvm.fma.f32(float %s, float %s, float %s)
; run: simd simd-fused cpu=x86-64-v3
; expect: %four = call <4 x float> @llvm.fma.v4f32(
; absent: smelt_runtime
declare <4 x float> @llvm.fma.v4f32(<4 x float>, <4 x float>, <4 x float>)
declare float @llvm.fma.f32(float, float, float)
define void @__smelt_entry(ptr %context) {
  %x = load <4 x float>, ptr %context
  %four = call <4 x float> @llvm.fma.v4f32(<4 x float> %x, <4 x float> %x, <4 x float> %x)
  store <4 x float> %four, ptr %context
  %s = load float, ptr %context
  %one = call float @llvm.fma.f32(float %s, float %s, float %s)
  store float %one, ptr %context
  ret void
}
