; With 32 look-ups or more, constants of the permutations stay in registers: the assembler must not know them.
; run: ptx ptx-target+ptx-nibbles
; expect: {lanes:…} = call i32 @llvm.nvvm.read.ptx.sreg.lanemask.lt()
; expect: {zero:…} = lshr i32 {lanes:…}, 31
; expect: {signs:…} = add i32 {zero:…}, -2139062144
; expect: {fourth:…} = add i32 {zero:…}, 1061109504
; expect: {third:…} = add i32 {zero:…}, -1065353216
; expect: call i32 @llvm.nvvm.prmt(i32 {third:…}, i32 -1065336832, i32
; expect: call i32 @llvm.nvvm.prmt(i32 {fourth:…}, i32 1077952576, i32
; expect: call i32 @llvm.nvvm.prmt(i32 {signs:…}, i32 -2139062144, i32
; absent: load float
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@fp4 = internal addrspace(1) constant [16 x float] [float 0.0, float 0.5, float 1.0, float 1.5, float 2.0, float 3.0, float 4.0, float 6.0, float -0.0, float -0.5, float -1.0, float -1.5, float -2.0, float -3.0, float -4.0, float -6.0]

define void @__smelt_entry(ptr nocapture %context) {
  %w0.at = getelementptr inbounds i8, ptr %context, i64 0
  %w0 = load i32, ptr %w0.at
  %w0p0s = lshr i32 %w0, 0
  %w0p0m = and i32 %w0p0s, 15
  %w0p0w = zext i32 %w0p0m to i64
  %w0p0a = getelementptr inbounds [16 x float], ptr addrspace(1) @fp4, i64 0, i64 %w0p0w
  %w0p0v = load float, ptr addrspace(1) %w0p0a, align 4
  store float %w0p0v, ptr %context
  %w0p1s = lshr i32 %w0, 4
  %w0p1m = and i32 %w0p1s, 15
  %w0p1w = zext i32 %w0p1m to i64
  %w0p1a = getelementptr inbounds [16 x float], ptr addrspace(1) @fp4, i64 0, i64 %w0p1w
  %w0p1v = load float, ptr addrspace(1) %w0p1a, align 4
  store float %w0p1v, ptr %context
  %w0p2s = lshr i32 %w0, 8
  %w0p2m = and i32 %w0p2s, 15
  %w0p2w = zext i32 %w0p2m to i64
  %w0p2a = getelementptr inbounds [16 x float], ptr addrspace(1) @fp4, i64 0, i64 %w0p2w
  %w0p2v = load float, ptr addrspace(1) %w0p2a, align 4
  store float %w0p2v, ptr %context
  %w0p3s = lshr i32 %w0, 12
  %w0p3m = and i32 %w0p3s, 15
  %w0p3w = zext i32 %w0p3m to i64
  %w0p3a = getelementptr inbounds [16 x float], ptr addrspace(1) @fp4, i64 0, i64 %w0p3w
  %w0p3v = load float, ptr addrspace(1) %w0p3a, align 4
  store float %w0p3v, ptr %context
  %w0p4s = lshr i32 %w0, 16
  %w0p4m = and i32 %w0p4s, 15
  %w0p4w = zext i32 %w0p4m to i64
  %w0p4a = getelementptr inbounds [16 x float], ptr addrspace(1) @fp4, i64 0, i64 %w0p4w
  %w0p4v = load float, ptr addrspace(1) %w0p4a, align 4
  store float %w0p4v, ptr %context
  %w0p5s = lshr i32 %w0, 20
  %w0p5m = and i32 %w0p5s, 15
  %w0p5w = zext i32 %w0p5m to i64
  %w0p5a = getelementptr inbounds [16 x float], ptr addrspace(1) @fp4, i64 0, i64 %w0p5w
  %w0p5v = load float, ptr addrspace(1) %w0p5a, align 4
  store float %w0p5v, ptr %context
  %w0p6s = lshr i32 %w0, 24
  %w0p6m = and i32 %w0p6s, 15
  %w0p6w = zext i32 %w0p6m to i64
  %w0p6a = getelementptr inbounds [16 x float], ptr addrspace(1) @fp4, i64 0, i64 %w0p6w
  %w0p6v = load float, ptr addrspace(1) %w0p6a, align 4
  store float %w0p6v, ptr %context
  %w0p7s = lshr i32 %w0, 28
  %w0p7m = and i32 %w0p7s, 15
  %w0p7w = zext i32 %w0p7m to i64
  %w0p7a = getelementptr inbounds [16 x float], ptr addrspace(1) @fp4, i64 0, i64 %w0p7w
  %w0p7v = load float, ptr addrspace(1) %w0p7a, align 4
  store float %w0p7v, ptr %context
  %w1.at = getelementptr inbounds i8, ptr %context, i64 4
  %w1 = load i32, ptr %w1.at
  %w1p0s = lshr i32 %w1, 0
  %w1p0m = and i32 %w1p0s, 15
  %w1p0w = zext i32 %w1p0m to i64
  %w1p0a = getelementptr inbounds [16 x float], ptr addrspace(1) @fp4, i64 0, i64 %w1p0w
  %w1p0v = load float, ptr addrspace(1) %w1p0a, align 4
  store float %w1p0v, ptr %context
  %w1p1s = lshr i32 %w1, 4
  %w1p1m = and i32 %w1p1s, 15
  %w1p1w = zext i32 %w1p1m to i64
  %w1p1a = getelementptr inbounds [16 x float], ptr addrspace(1) @fp4, i64 0, i64 %w1p1w
  %w1p1v = load float, ptr addrspace(1) %w1p1a, align 4
  store float %w1p1v, ptr %context
  %w1p2s = lshr i32 %w1, 8
  %w1p2m = and i32 %w1p2s, 15
  %w1p2w = zext i32 %w1p2m to i64
  %w1p2a = getelementptr inbounds [16 x float], ptr addrspace(1) @fp4, i64 0, i64 %w1p2w
  %w1p2v = load float, ptr addrspace(1) %w1p2a, align 4
  store float %w1p2v, ptr %context
  %w1p3s = lshr i32 %w1, 12
  %w1p3m = and i32 %w1p3s, 15
  %w1p3w = zext i32 %w1p3m to i64
  %w1p3a = getelementptr inbounds [16 x float], ptr addrspace(1) @fp4, i64 0, i64 %w1p3w
  %w1p3v = load float, ptr addrspace(1) %w1p3a, align 4
  store float %w1p3v, ptr %context
  %w1p4s = lshr i32 %w1, 16
  %w1p4m = and i32 %w1p4s, 15
  %w1p4w = zext i32 %w1p4m to i64
  %w1p4a = getelementptr inbounds [16 x float], ptr addrspace(1) @fp4, i64 0, i64 %w1p4w
  %w1p4v = load float, ptr addrspace(1) %w1p4a, align 4
  store float %w1p4v, ptr %context
  %w1p5s = lshr i32 %w1, 20
  %w1p5m = and i32 %w1p5s, 15
  %w1p5w = zext i32 %w1p5m to i64
  %w1p5a = getelementptr inbounds [16 x float], ptr addrspace(1) @fp4, i64 0, i64 %w1p5w
  %w1p5v = load float, ptr addrspace(1) %w1p5a, align 4
  store float %w1p5v, ptr %context
  %w1p6s = lshr i32 %w1, 24
  %w1p6m = and i32 %w1p6s, 15
  %w1p6w = zext i32 %w1p6m to i64
  %w1p6a = getelementptr inbounds [16 x float], ptr addrspace(1) @fp4, i64 0, i64 %w1p6w
  %w1p6v = load float, ptr addrspace(1) %w1p6a, align 4
  store float %w1p6v, ptr %context
  %w1p7s = lshr i32 %w1, 28
  %w1p7m = and i32 %w1p7s, 15
  %w1p7w = zext i32 %w1p7m to i64
  %w1p7a = getelementptr inbounds [16 x float], ptr addrspace(1) @fp4, i64 0, i64 %w1p7w
  %w1p7v = load float, ptr addrspace(1) %w1p7a, align 4
  store float %w1p7v, ptr %context
  %w2.at = getelementptr inbounds i8, ptr %context, i64 8
  %w2 = load i32, ptr %w2.at
  %w2p0s = lshr i32 %w2, 0
  %w2p0m = and i32 %w2p0s, 15
  %w2p0w = zext i32 %w2p0m to i64
  %w2p0a = getelementptr inbounds [16 x float], ptr addrspace(1) @fp4, i64 0, i64 %w2p0w
  %w2p0v = load float, ptr addrspace(1) %w2p0a, align 4
  store float %w2p0v, ptr %context
  %w2p1s = lshr i32 %w2, 4
  %w2p1m = and i32 %w2p1s, 15
  %w2p1w = zext i32 %w2p1m to i64
  %w2p1a = getelementptr inbounds [16 x float], ptr addrspace(1) @fp4, i64 0, i64 %w2p1w
  %w2p1v = load float, ptr addrspace(1) %w2p1a, align 4
  store float %w2p1v, ptr %context
  %w2p2s = lshr i32 %w2, 8
  %w2p2m = and i32 %w2p2s, 15
  %w2p2w = zext i32 %w2p2m to i64
  %w2p2a = getelementptr inbounds [16 x float], ptr addrspace(1) @fp4, i64 0, i64 %w2p2w
  %w2p2v = load float, ptr addrspace(1) %w2p2a, align 4
  store float %w2p2v, ptr %context
  %w2p3s = lshr i32 %w2, 12
  %w2p3m = and i32 %w2p3s, 15
  %w2p3w = zext i32 %w2p3m to i64
  %w2p3a = getelementptr inbounds [16 x float], ptr addrspace(1) @fp4, i64 0, i64 %w2p3w
  %w2p3v = load float, ptr addrspace(1) %w2p3a, align 4
  store float %w2p3v, ptr %context
  %w2p4s = lshr i32 %w2, 16
  %w2p4m = and i32 %w2p4s, 15
  %w2p4w = zext i32 %w2p4m to i64
  %w2p4a = getelementptr inbounds [16 x float], ptr addrspace(1) @fp4, i64 0, i64 %w2p4w
  %w2p4v = load float, ptr addrspace(1) %w2p4a, align 4
  store float %w2p4v, ptr %context
  %w2p5s = lshr i32 %w2, 20
  %w2p5m = and i32 %w2p5s, 15
  %w2p5w = zext i32 %w2p5m to i64
  %w2p5a = getelementptr inbounds [16 x float], ptr addrspace(1) @fp4, i64 0, i64 %w2p5w
  %w2p5v = load float, ptr addrspace(1) %w2p5a, align 4
  store float %w2p5v, ptr %context
  %w2p6s = lshr i32 %w2, 24
  %w2p6m = and i32 %w2p6s, 15
  %w2p6w = zext i32 %w2p6m to i64
  %w2p6a = getelementptr inbounds [16 x float], ptr addrspace(1) @fp4, i64 0, i64 %w2p6w
  %w2p6v = load float, ptr addrspace(1) %w2p6a, align 4
  store float %w2p6v, ptr %context
  %w2p7s = lshr i32 %w2, 28
  %w2p7m = and i32 %w2p7s, 15
  %w2p7w = zext i32 %w2p7m to i64
  %w2p7a = getelementptr inbounds [16 x float], ptr addrspace(1) @fp4, i64 0, i64 %w2p7w
  %w2p7v = load float, ptr addrspace(1) %w2p7a, align 4
  store float %w2p7v, ptr %context
  %w3.at = getelementptr inbounds i8, ptr %context, i64 12
  %w3 = load i32, ptr %w3.at
  %w3p0s = lshr i32 %w3, 0
  %w3p0m = and i32 %w3p0s, 15
  %w3p0w = zext i32 %w3p0m to i64
  %w3p0a = getelementptr inbounds [16 x float], ptr addrspace(1) @fp4, i64 0, i64 %w3p0w
  %w3p0v = load float, ptr addrspace(1) %w3p0a, align 4
  store float %w3p0v, ptr %context
  %w3p1s = lshr i32 %w3, 4
  %w3p1m = and i32 %w3p1s, 15
  %w3p1w = zext i32 %w3p1m to i64
  %w3p1a = getelementptr inbounds [16 x float], ptr addrspace(1) @fp4, i64 0, i64 %w3p1w
  %w3p1v = load float, ptr addrspace(1) %w3p1a, align 4
  store float %w3p1v, ptr %context
  %w3p2s = lshr i32 %w3, 8
  %w3p2m = and i32 %w3p2s, 15
  %w3p2w = zext i32 %w3p2m to i64
  %w3p2a = getelementptr inbounds [16 x float], ptr addrspace(1) @fp4, i64 0, i64 %w3p2w
  %w3p2v = load float, ptr addrspace(1) %w3p2a, align 4
  store float %w3p2v, ptr %context
  %w3p3s = lshr i32 %w3, 12
  %w3p3m = and i32 %w3p3s, 15
  %w3p3w = zext i32 %w3p3m to i64
  %w3p3a = getelementptr inbounds [16 x float], ptr addrspace(1) @fp4, i64 0, i64 %w3p3w
  %w3p3v = load float, ptr addrspace(1) %w3p3a, align 4
  store float %w3p3v, ptr %context
  %w3p4s = lshr i32 %w3, 16
  %w3p4m = and i32 %w3p4s, 15
  %w3p4w = zext i32 %w3p4m to i64
  %w3p4a = getelementptr inbounds [16 x float], ptr addrspace(1) @fp4, i64 0, i64 %w3p4w
  %w3p4v = load float, ptr addrspace(1) %w3p4a, align 4
  store float %w3p4v, ptr %context
  %w3p5s = lshr i32 %w3, 20
  %w3p5m = and i32 %w3p5s, 15
  %w3p5w = zext i32 %w3p5m to i64
  %w3p5a = getelementptr inbounds [16 x float], ptr addrspace(1) @fp4, i64 0, i64 %w3p5w
  %w3p5v = load float, ptr addrspace(1) %w3p5a, align 4
  store float %w3p5v, ptr %context
  %w3p6s = lshr i32 %w3, 24
  %w3p6m = and i32 %w3p6s, 15
  %w3p6w = zext i32 %w3p6m to i64
  %w3p6a = getelementptr inbounds [16 x float], ptr addrspace(1) @fp4, i64 0, i64 %w3p6w
  %w3p6v = load float, ptr addrspace(1) %w3p6a, align 4
  store float %w3p6v, ptr %context
  %w3p7s = lshr i32 %w3, 28
  %w3p7m = and i32 %w3p7s, 15
  %w3p7w = zext i32 %w3p7m to i64
  %w3p7a = getelementptr inbounds [16 x float], ptr addrspace(1) @fp4, i64 0, i64 %w3p7w
  %w3p7v = load float, ptr addrspace(1) %w3p7a, align 4
  store float %w3p7v, ptr %context
  ret void
}
