; What access the shape of an address gets: a stride of 2 is vectors and a shuffle, loaded indexes a gather, or
; a vector where lanes turn out to be neighbours; a reduction of a simdgroup combines lanes in a tree.
; run: simd simd-gang
; expect: shufflevector <{…} x i32> %
; expect: call <16 x i32> @llvm.masked.gather.v16i32.v16p0(
; absent: __smelt_simd_reduce
; absent: __smelt_lane
declare i32 @__smelt_lane()
declare i32 @__smelt_simd_reduce_i32(i32, i32, i32)
declare ptr @__smelt_buffer_address(i32)

define void @__smelt_entry(ptr %context) {
  %a = call ptr @__smelt_buffer_address(i32 0)
  %lane = call i32 @__smelt_lane()
  %index = zext i32 %lane to i64
  %even = shl i64 %index, 1
  %strided = getelementptr inbounds i32, ptr %a, i64 %even
  %x = load i32, ptr %strided
  %far = sext i32 %x to i64
  %anywhere = getelementptr inbounds i32, ptr %a, i64 %far
  %y = load i32, ptr %anywhere
  %sum = call i32 @__smelt_simd_reduce_i32(i32 0, i32 32, i32 %y)
  store i32 %sum, ptr %a
  ret void
}
