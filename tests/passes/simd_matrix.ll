; A product of simdgroup matrices of floats in threadgroup memory: a chunk is a row of 8 elements, also where registers hold 16. Gangs
; whose lanes may lack threads have no rows, so their chunks fill the registers.
; run: simd simd-gang cpu=x86-64-v3 threads=32
; expect: call <8 x float> @llvm.fma.v8f32
; run: simd simd-gang cpu=x86-64-v4 threads=32
; expect: call <8 x float> @llvm.fma.v8f32
; absent: <16 x float>
; run: simd simd-gang cpu=x86-64-v4 masked=1
; expect: call <16 x float> @llvm.fma.v16f32
declare i32 @__smelt_lane()
declare ptr @__smelt_buffer_address(i32)
declare float @__smelt_simd_matrix_product(float, float, float, float)
@tile = internal addrspace(3) global [128 x float] undef

define void @__smelt_entry(ptr %context) {
entry:
  %out = call ptr @__smelt_buffer_address(i32 0)
  %to = addrspacecast ptr %out to ptr addrspace(5)
  %lane = call i32 @__smelt_lane()
  %wide = zext i32 %lane to i64
  %pair = shl i64 %wide, 1
  %even = getelementptr inbounds float, ptr addrspace(3) @tile, i64 %pair
  %odd = getelementptr inbounds float, ptr addrspace(3) %even, i64 1
  %a = load float, ptr addrspace(3) %even
  %b = load float, ptr addrspace(3) %odd
  %first = call float @__smelt_simd_matrix_product(float %a, float %b, float %a, float 0.0)
  %second = call float @__smelt_simd_matrix_product(float %a, float %b, float %b, float 0.0)
  %even_to = getelementptr inbounds float, ptr addrspace(5) %to, i64 %pair
  %odd_to = getelementptr inbounds float, ptr addrspace(5) %even_to, i64 1
  store float %first, ptr addrspace(5) %even_to
  store float %second, ptr addrspace(5) %odd_to
  ret void
}
