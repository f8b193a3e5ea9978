; A tile with rows of 64 bytes: the 16-byte parts of each 128 bytes change places, in the stores that fill it and in the loads of matrices. A
; distance of 1024 bytes moves nothing else.
; run: ptx ptx-target+ptx-matrix+ptx-swizzle threads=32
; expect: {A:…} = and i32 {…}, 112
; expect: xor i32 {…}, {A:…}
; expect: inttoptr i32
; expect: {B:…} = and i32 {…}, 112
; expect: {X:…} = xor i32 {…}, {B:…}
; expect: ldmatrix{…}+1024]{…}(i32 {X:…})
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@tile = internal addrspace(3) global [2048 x half] undef, align 128

declare float @__smelt_simd_matrix_product(float, float, float, float)
declare i32 @__smelt_lane()
declare void @__smelt_threadgroup_barrier(i32, i32, ptr)

define void @__smelt_entry(ptr %context) {
entry:
  %array = load ptr addrspace(1), ptr %context, align 8
  %lane = call i32 @__smelt_lane(), !range !0
  %filled = getelementptr inbounds half, ptr addrspace(3) @tile, i32 %lane
  store half 1.0, ptr addrspace(3) %filled, align 2
  call void @__smelt_threadgroup_barrier(i32 2, i32 1, ptr null)
  ; Metal's lane has the elements of row (lane / 4 & 4) + (lane / 2 & 3), column (lane / 2 & 4) + (lane & 1) * 2.
  %half = lshr i32 %lane, 1
  %low = and i32 %half, 3
  %quarter = lshr i32 %lane, 2
  %high = and i32 %quarter, 4
  %row = or disjoint i32 %high, %low
  %left = and i32 %half, 4
  %pair = shl i32 %lane, 1
  %right = and i32 %pair, 2
  %column = or disjoint i32 %left, %right
  %begin = shl i32 %row, 5
  %place = or disjoint i32 %begin, %column
  %even.at = getelementptr inbounds half, ptr addrspace(3) getelementptr inbounds (i8, ptr addrspace(3) @tile, i32 1024), i32 %place
  %odd.at = getelementptr inbounds i8, ptr addrspace(3) %even.at, i32 2
  %even = load half, ptr addrspace(3) %even.at, align 4
  %odd = load half, ptr addrspace(3) %odd.at, align 2
  %a = fpext half %even to float
  %b = fpext half %odd to float
  %x = load half, ptr addrspace(1) %array
  %y = load half, ptr addrspace(1) %array
  %c = fpext half %x to float
  %d = fpext half %y to float
  %p = call float @__smelt_simd_matrix_product(float %a, float %b, float %c, float 0.0)
  %q = call float @__smelt_simd_matrix_product(float %a, float %b, float %d, float 0.0)
  store float %p, ptr addrspace(1) %array
  store float %q, ptr addrspace(1) %array
  ret void
}

!0 = !{i32 0, i32 32}
