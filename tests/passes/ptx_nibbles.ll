; Look-ups of at least three 4-bit parts of a word, in a table whose upper half is the lower one with the other sign, are permutations;
; those of other words, and in other tables, are loads.
; run: ptx ptx-target+ptx-nibbles
; expect: call i32 @llvm.nvvm.prmt(i32 -1065353216, i32 -1065336832, i32 %{lower:…})
; absent: load float, ptr addrspace(1) %a
; expect: load float, ptr addrspace(1) %b0
; expect: load float, ptr addrspace(1) %c0
; expect: load float, ptr addrspace(1) %c2
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@fp4 = internal addrspace(1) constant [16 x float] [float 0.0, float 0.5, float 1.0, float 1.5, float 2.0, float 3.0, float 4.0, float 6.0, float -0.0, float -0.5, float -1.0, float -1.5, float -2.0, float -3.0, float -4.0, float -6.0]
@other = internal addrspace(1) constant [16 x float] [float 0.0, float 0.5, float 1.0, float 1.5, float 2.0, float 3.0, float 4.0, float 6.0, float 7.0, float -0.5, float -1.0, float -1.5, float -2.0, float -3.0, float -4.0, float -6.0]

define void @__smelt_entry(ptr nocapture %context) {
  %w = load i32, ptr %context
  %v.at = getelementptr inbounds i8, ptr %context, i64 4
  %v = load i32, ptr %v.at
  %a0m = and i32 %w, 15
  %a0w = zext i32 %a0m to i64
  %a0 = getelementptr inbounds [16 x float], ptr addrspace(1) @fp4, i64 0, i64 %a0w
  %a0v = load float, ptr addrspace(1) %a0, align 4
  store float %a0v, ptr %context
  %a1s = lshr i32 %w, 4
  %a1m = and i32 %a1s, 15
  %a1w = zext i32 %a1m to i64
  %a1 = getelementptr inbounds [16 x float], ptr addrspace(1) @fp4, i64 0, i64 %a1w
  %a1v = load float, ptr addrspace(1) %a1, align 4
  store float %a1v, ptr %context
  %a2s = lshr i32 %w, 12
  %a2m = and i32 %a2s, 15
  %a2w = zext i32 %a2m to i64
  %a2 = getelementptr inbounds [16 x float], ptr addrspace(1) @fp4, i64 0, i64 %a2w
  %a2v = load float, ptr addrspace(1) %a2, align 4
  store float %a2v, ptr %context
  %b0m = and i32 %v, 15
  %b0w = zext i32 %b0m to i64
  %b0 = getelementptr inbounds [16 x float], ptr addrspace(1) @fp4, i64 0, i64 %b0w
  %b0v = load float, ptr addrspace(1) %b0, align 4
  store float %b0v, ptr %context
  %b1s = lshr i32 %v, 8
  %b1m = and i32 %b1s, 15
  %b1w = zext i32 %b1m to i64
  %b1 = getelementptr inbounds [16 x float], ptr addrspace(1) @fp4, i64 0, i64 %b1w
  %b1v = load float, ptr addrspace(1) %b1, align 4
  store float %b1v, ptr %context
  %c0m = and i32 %w, 15
  %c0w = zext i32 %c0m to i64
  %c0 = getelementptr inbounds [16 x float], ptr addrspace(1) @other, i64 0, i64 %c0w
  %c0v = load float, ptr addrspace(1) %c0, align 4
  store float %c0v, ptr %context
  %c1s = lshr i32 %w, 4
  %c1m = and i32 %c1s, 15
  %c1w = zext i32 %c1m to i64
  %c1 = getelementptr inbounds [16 x float], ptr addrspace(1) @other, i64 0, i64 %c1w
  %c1v = load float, ptr addrspace(1) %c1, align 4
  store float %c1v, ptr %context
  %c2s = lshr i32 %w, 8
  %c2m = and i32 %c2s, 15
  %c2w = zext i32 %c2m to i64
  %c2 = getelementptr inbounds [16 x float], ptr addrspace(1) @other, i64 0, i64 %c2w
  %c2v = load float, ptr addrspace(1) %c2, align 4
  store float %c2v, ptr %context
  ret void
}
