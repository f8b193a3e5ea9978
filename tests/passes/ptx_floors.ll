; A sum of a square and a constant is at least as great as the constant, or NaN; the difference of a number and the maximum of it
; and another one is at most 0. The comparison of a number that may be anything stays, and so does one that is true for NaN. A
; quotient by a square is negative; one by a number that may be -0 need not be.
; run: ptx ptx-floors
; absent: %tiny
; absent: %not.tiny
; expect: %unknown = fcmp olt float %x
; expect: %or.nan = fcmp ult float %sum
; expect: %large = fcmp olt float %sum, 1.0
; absent: %great
; expect: %above = fcmp ogt float %difference, -1.0
; expect: %other.way = fcmp ogt float %other.difference, 8.9
; absent: %by.square.great
; expect: %by.zero.great = fcmp ogt float %by.zero, 8.9
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

declare float @llvm.fma.f32(float, float, float)
declare float @llvm.fabs.f32(float)
declare float @llvm.maxnum.f32(float, float)

define void @__smelt_entry(ptr nocapture readonly %context) {
entry:
  %a = load ptr addrspace(1), ptr %context, align 8, !invariant.load !0
  %b = getelementptr inbounds float, ptr addrspace(1) %a, i64 1
  %x = load float, ptr addrspace(1) %a, align 4
  %y = load float, ptr addrspace(1) %b, align 4
  %square = fmul float %x, %x
  %squares = call float @llvm.fma.f32(float %y, float %y, float %square)
  %sum = fadd float %squares, 5.000000e-01
  %tiny = fcmp olt float %sum, 0x39B0000000000000
  %scaled = select i1 %tiny, float 1.000000e+00, float %sum
  %not.tiny = fcmp uge float %sum, 5.000000e-01
  %s = select i1 %not.tiny, float %scaled, float %x
  %unknown = fcmp olt float %x, 0x39B0000000000000
  %t = select i1 %unknown, float %s, float %y
  %or.nan = fcmp ult float %sum, 0x39B0000000000000
  %u = select i1 %or.nan, float %t, float %y
  %large = fcmp olt float %sum, 1.000000e+00
  %v = select i1 %large, float %u, float %x
  store float %v, ptr addrspace(1) %b, align 4
  %most = call float @llvm.maxnum.f32(float %y, float %x)
  %difference = fsub float %x, %most
  %great = fcmp ogt float %difference, 8.900000e+01
  %w = select i1 %great, float 8.900000e+01, float %difference
  %above = fcmp ogt float %difference, -1.000000e+00
  %w.2 = select i1 %above, float %w, float %x
  %other.difference = fsub float %most, %x
  %other.way = fcmp ogt float %other.difference, 8.900000e+01
  %w.3 = select i1 %other.way, float %w.2, float %y
  store float %w.3, ptr addrspace(1) %b, align 4
  %magnitude = call float @llvm.fabs.f32(float %y)
  %negative = fneg float %magnitude
  %by.square = fdiv float %negative, %square
  %by.square.great = fcmp ogt float %by.square, 8.900000e+01
  %w.4 = select i1 %by.square.great, float 8.900000e+01, float %by.square
  %below = fcmp oge float %x, 0.000000e+00
  %zero = select i1 %below, float %x, float 0.000000e+00
  %by.zero = fdiv float %negative, %zero
  %by.zero.great = fcmp ogt float %by.zero, 8.900000e+01
  %w.5 = select i1 %by.zero.great, float %w.4, float %by.zero
  store float %w.5, ptr addrspace(1) %b, align 4
  ret void
}

!0 = !{}
