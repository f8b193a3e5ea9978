; Products of fragments become the tensor cores' instruction, and lanes get the fragments' order: thread numbers, lanes
; that values are taken from, and votes.
; run: ptx ptx-target+ptx-fragments+ptx-simdgroup+ptx-lower
; expect: tid.x()
; expect: , -15
; expect: , 12
; expect: asm "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};", "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"(i32 %number, i32 2, i32 3, i32 4, i32 5, i32 6, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00)
; expect: insertelement <4 x float>
; expect: , 6
; expect: call i32 @llvm.nvvm.shfl.sync.idx.i32
; expect: call i32 @llvm.nvvm.vote.ballot.sync
; expect: , 13369548
; expect: , 202116108
; absent: call <4 x float> @__smelt_fragment_
; run: ptx ptx-target+ptx-fragments
; expect: extractvalue { float, float, float, float }
; expect: call i32 @__smelt_simd_shuffle_i32(i32 7, i32 %number)
declare <4 x float> @__smelt_fragment_product_bfloat(i32, i32, i32, i32, i32, i32, <4 x float>)
declare i32 @__smelt_simd_shuffle_i32(i32, i32)
declare i32 @__smelt_simd_ballot(i1)

define void @__smelt_entry(ptr %context) {
  %number = load i32, ptr %context
  %sums = call <4 x float> @__smelt_fragment_product_bfloat(i32 %number, i32 2, i32 3, i32 4, i32 5, i32 6, <4 x float> zeroinitializer)
  %sum = extractelement <4 x float> %sums, i32 0
  %moved = call i32 @__smelt_simd_shuffle_i32(i32 7, i32 %number)
  %positive = fcmp ogt float %sum, 0.0
  %vote = call i32 @__smelt_simd_ballot(i1 %positive)
  %both = add i32 %moved, %vote
  store i32 %both, ptr %context
  ret void
}
