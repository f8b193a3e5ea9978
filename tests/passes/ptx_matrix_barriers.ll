; A simdgroup barrier of mem_none goes if nothing is written between the barriers before and behind it.
; run: ptx ptx-target+ptx-matrix threads=32
; expect: load half
; expect: call void @__smelt_simdgroup_barrier(i32 2)
; expect: store float
; expect: call void @__smelt_simdgroup_barrier(i32 0)
; expect: ret void
; absent: call void @__smelt_simdgroup_barrier(i32 7)
declare float @__smelt_simd_matrix_product(float, float, float, float)
declare void @__smelt_simdgroup_barrier(i32)

define void @__smelt_entry(ptr %context) {
  %x = load half, ptr %context
  call void @__smelt_simdgroup_barrier(i32 0)
  %y = load half, ptr %context
  call void @__smelt_simdgroup_barrier(i32 0)
  %left = fpext half %x to float
  %right = fpext half %y to float
  %sum = call float @__smelt_simd_matrix_product(float %left, float %left, float %right, float 0.0)
  call void @__smelt_simdgroup_barrier(i32 2)
  store float %sum, ptr %context
  call void @__smelt_simdgroup_barrier(i32 0)
  ret void
}
