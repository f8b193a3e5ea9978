; Where all lanes come, the mask is that of the whole warp; behind a branch that differs by lane it is voted on there.
; run: ptx ptx-target+ptx-simdgroup threads=32
; expect: call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1, i32 %lane, i32 3,
; expect: %some = icmp ugt i32 %lane, 5
; expect: %{mask:…} = call i32 @llvm.nvvm.vote.ballot.sync(i32 -1, i1 %some)
; expect: br i1 %some
; expect: call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 %{mask:…}, i32 %lane,
; expect: call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1, i32 %lane, i32 9,
; absent: activemask
; absent: call i32 @__smelt_simd_shuffle
declare i32 @__smelt_simd_shuffle_i32(i32, i32)
declare i32 @__smelt_lane()

define void @__smelt_entry(ptr %context) {
entry:
  %lane = call i32 @__smelt_lane()
  %all = call i32 @__smelt_simd_shuffle_i32(i32 %lane, i32 3)
  store i32 %all, ptr %context
  %some = icmp ugt i32 %lane, 5
  br i1 %some, label %then, label %end
then:
  %part = call i32 @__smelt_simd_shuffle_i32(i32 %lane, i32 7)
  store i32 %part, ptr %context
  br label %end
end:
  %again = call i32 @__smelt_simd_shuffle_i32(i32 %lane, i32 9)
  store i32 %again, ptr %context
  ret void
}
