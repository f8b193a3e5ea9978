; A loop over products of one left matrix, which is half and converted, and two right ones, all in threadgroup memory. With registers of
; 512 bits, rows of both sums are side by side in one vector, which the loop carries; the matrix is converted in each round.
; run: simd simd-gang cpu=x86-64-v4 threads=32
; expect: phi <16 x float>
; expect: fpext <8 x half>
; expect: call <16 x float> @llvm.fma.v16f32
; absent: call <8 x float> @llvm.fma.v8f32
; run: simd simd-gang cpu=x86-64-v3 threads=32
; expect: call <8 x float> @llvm.fma.v8f32
; absent: <16 x float>
declare i32 @__smelt_lane()
declare ptr @__smelt_buffer_address(i32)
declare float @__smelt_simd_matrix_product(float, float, float, float)
@left = internal addrspace(3) global [512 x half] undef
@right = internal addrspace(3) global [1024 x float] undef

define void @__smelt_entry(ptr %context) {
entry:
  %out = call ptr @__smelt_buffer_address(i32 0)
  %to = addrspacecast ptr %out to ptr addrspace(5)
  %lane = call i32 @__smelt_lane()
  %wide = zext i32 %lane to i64
  %high = lshr i64 %wide, 2
  %row_4 = and i64 %high, 4
  %middle = lshr i64 %wide, 1
  %row_3 = and i64 %middle, 3
  %row = or disjoint i64 %row_4, %row_3
  %pair_2 = and i64 %high, 2
  %pair_1 = and i64 %wide, 1
  %pair = or disjoint i64 %pair_2, %pair_1
  %column = shl nuw nsw i64 %pair, 1
  %row_at = shl nuw nsw i64 %row, 3
  %at = add nuw nsw i64 %row_at, %column
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p0 = phi float [ 0.0, %entry ], [ %p0_next, %loop ]
  %p1 = phi float [ 0.0, %entry ], [ %p1_next, %loop ]
  %q0 = phi float [ 0.0, %entry ], [ %q0_next, %loop ]
  %q1 = phi float [ 0.0, %entry ], [ %q1_next, %loop ]
  %left_at = getelementptr inbounds [64 x half], ptr addrspace(3) @left, i64 %i, i64 %at
  %left_odd = getelementptr inbounds half, ptr addrspace(3) %left_at, i64 1
  %a0_half = load half, ptr addrspace(3) %left_at
  %a1_half = load half, ptr addrspace(3) %left_odd
  %a0 = fpext half %a0_half to float
  %a1 = fpext half %a1_half to float
  %right_at = getelementptr inbounds [128 x float], ptr addrspace(3) @right, i64 %i, i64 %at
  %right_odd = getelementptr inbounds float, ptr addrspace(3) %right_at, i64 1
  %other_at = getelementptr inbounds float, ptr addrspace(3) %right_at, i64 64
  %other_odd = getelementptr inbounds float, ptr addrspace(3) %other_at, i64 1
  %b0 = load float, ptr addrspace(3) %right_at
  %b1 = load float, ptr addrspace(3) %right_odd
  %c0 = load float, ptr addrspace(3) %other_at
  %c1 = load float, ptr addrspace(3) %other_odd
  %p0_next = call float @__smelt_simd_matrix_product(float %a0, float %a1, float %b0, float %p0)
  %p1_next = call float @__smelt_simd_matrix_product(float %a0, float %a1, float %b1, float %p1)
  %q0_next = call float @__smelt_simd_matrix_product(float %a0, float %a1, float %c0, float %q0)
  %q1_next = call float @__smelt_simd_matrix_product(float %a0, float %a1, float %c1, float %q1)
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, 8
  br i1 %more, label %loop, label %end
end:
  %first = getelementptr inbounds float, ptr addrspace(5) %to, i64 %at
  %first_odd = getelementptr inbounds float, ptr addrspace(5) %first, i64 1
  %second = getelementptr inbounds float, ptr addrspace(5) %first, i64 64
  %second_odd = getelementptr inbounds float, ptr addrspace(5) %second, i64 1
  store float %p0_next, ptr addrspace(5) %first
  store float %p1_next, ptr addrspace(5) %first_odd
  store float %q0_next, ptr addrspace(5) %second
  store float %q1_next, ptr addrspace(5) %second_odd
  ret void
}
