; A product of simdgroup matrices: shuffles and fused multiply-adds, one for each column of the left matrix;
; tensor cores where the operands lose nothing.
; run: ptx ptx-target+ptx-matrix threads=32
; expect: shfl.sync.idx
; expect: call float @llvm.fma.f32(
; expect: store float %
; absent: call float @__smelt_simd_matrix_product
; absent: mma.sync
declare float @__smelt_simd_matrix_product(float, float, float, float)
declare i32 @__smelt_lane()

define void @__smelt_entry(ptr %context) {
  %x = load float, ptr %context
  %y = load float, ptr %context
  %sum = call float @__smelt_simd_matrix_product(float %x, float %x, float %y, float 0.0)
  store float %sum, ptr %context
  ret void
}
