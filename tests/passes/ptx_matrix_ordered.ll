; Where a loop looks at the sums of a product, lanes take the fragments' order, and nothing moves between lanes.
; run: ptx ptx-target+ptx-matrix threads=32
; expect: movmatrix.sync
; expect: mma.sync
; expect: store float
; expect: !__smelt_ordered_lanes
; absent: shfl.sync
; As they are known to come together, reductions and simd_shuffle_xor flip bits of the lane's number.
; run: ptx ptx-target+ptx-matrix+ptx-simdgroup threads=32
; expect: call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 {…}, i32 2, i32 31)
; absent: call i32 @llvm.nvvm.shfl.sync.idx
; Warps that lack threads keep their order.
; run: ptx ptx-target+ptx-matrix threads=20
; absent: __smelt_ordered_lanes
declare float @__smelt_simd_matrix_product(float, float, float, float)
declare i32 @__smelt_simd_shuffle_i32(i32, i32)
declare i32 @__smelt_lane()

define void @__smelt_entry(ptr %context) {
entry:
  %x = load half, ptr %context
  %even = fpext half %x to float
  br label %round

round:
  %i = phi i32 [ 0, %entry ], [ %next, %round ]
  %y = load volatile half, ptr %context
  %right = fpext half %y to float
  %sum = call float @__smelt_simd_matrix_product(float %even, float %even, float %right, float 0.0)
  %seen = fmul float %sum, 3.0
  %lane = call i32 @__smelt_lane()
  %other = xor i32 %lane, 8
  %bits = bitcast float %seen to i32
  %moved = call i32 @__smelt_simd_shuffle_i32(i32 %bits, i32 %other)
  %back = bitcast i32 %moved to float
  store float %back, ptr %context
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, 4
  br i1 %more, label %round, label %end

end:
  ret void
}
