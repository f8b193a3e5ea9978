; Products of halves go to the tensor cores.
; run: ptx ptx-target+ptx-matrix threads=32
; expect: mma.sync.aligned.m16n8k8{…}.f16
; absent: call float @__smelt_simd_matrix_product
declare float @__smelt_simd_matrix_product(float, float, float, float)
declare i32 @__smelt_lane()

define void @__smelt_entry(ptr %context) {
  %left.even = load half, ptr %context
  %left.odd = load half, ptr %context
  %right.even = load half, ptr %context
  %right.odd = load half, ptr %context
  %a = fpext half %left.even to float
  %b = fpext half %left.odd to float
  %c = fpext half %right.even to float
  %d = fpext half %right.odd to float
  %even = call float @__smelt_simd_matrix_product(float %a, float %b, float %c, float 0.0)
  %odd = call float @__smelt_simd_matrix_product(float %a, float %b, float %d, float 0.0)
  store float %even, ptr %context
  store float %odd, ptr %context
  ret void
}
