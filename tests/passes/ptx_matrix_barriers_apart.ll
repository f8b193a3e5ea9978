; A barrier that only some lanes reach orders nothing for the others: the barrier of mem_none after it stays.
; run: ptx ptx-target+ptx-matrix threads=32
; expect: call void @__smelt_simdgroup_barrier(i32 2)
; expect: join:
; expect: call void @__smelt_simdgroup_barrier(i32 0)
; expect: load half
; absent: call void @__smelt_simdgroup_barrier(i32 7)
declare float @__smelt_simd_matrix_product(float, float, float, float)
declare void @__smelt_simdgroup_barrier(i32)
declare i32 @__smelt_lane()

@tile = internal addrspace(3) global [64 x half] undef

define void @__smelt_entry(ptr %context) {
entry:
  %lane = call i32 @__smelt_lane()
  %few = icmp ult i32 %lane, 16
  br i1 %few, label %some, label %join
some:
  %own = getelementptr half, ptr addrspace(3) @tile, i32 %lane
  store half 1.0, ptr addrspace(3) %own
  call void @__smelt_simdgroup_barrier(i32 2)
  br label %join
join:
  call void @__smelt_simdgroup_barrier(i32 0)
  %other.lane = xor i32 %lane, 31
  %other = getelementptr half, ptr addrspace(3) @tile, i32 %other.lane
  %x = load half, ptr addrspace(3) %other
  %left = fpext half %x to float
  %sum = call float @__smelt_simd_matrix_product(float %left, float %left, float %left, float 0.0)
  call void @__smelt_simdgroup_barrier(i32 2)
  store float %sum, ptr %context
  ret void
}
