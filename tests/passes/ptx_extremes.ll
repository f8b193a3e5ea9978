; The greater and the smaller one of two floats, where a NaN gives the other one and equal numbers the first: one instruction, one
; comparison, one select. A comparison that is true for NaN is something else.
; A limit that is a constant takes one instruction, unless the constant is a zero and the comparison chooses the other zero.
; run: ptx ptx-extremes
; expect: %{equal:…} = fcmp oeq float %x, %y
; expect: %{greater:…} = call float @llvm.maxnum.f32(float %x, float %y)
; expect: select i1 %{equal:…}, float %x, float %{greater:…}
; expect: %{same:…} = fcmp oeq float %x, %y
; expect: %{smaller:…} = call float @llvm.minnum.f32(float %x, float %y)
; expect: select i1 %{same:…}, float %x, float %{smaller:…}
; expect: select i1 %other, float %y, float %x
; expect: select i1 %nan.of.y, float %y, float %x
; expect: call float @llvm.minimum.f32(float %x, float 8.900000e+01)
; expect: call float @llvm.maxnum.f32(float %x, float 0.000000e+00)
; expect: %kept = select i1 %below, float 0.000000e+00, float %x
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

define void @__smelt_entry(ptr nocapture readonly %context) {
entry:
  %a = load ptr addrspace(1), ptr %context, align 8, !invariant.load !0
  %b = getelementptr inbounds float, ptr addrspace(1) %a, i64 1
  %x = load float, ptr addrspace(1) %a, align 4
  %y = load float, ptr addrspace(1) %b, align 4
  %less = fcmp olt float %x, %y
  %nan = fcmp uno float %x, 0.0
  %take.y = or i1 %less, %nan
  %most = select i1 %take.y, float %y, float %x
  %more = fcmp olt float %y, %x
  %or.nan = or i1 %nan, %more
  %least = select i1 %or.nan, float %y, float %x
  %perhaps = fcmp ult float %x, %y
  %other = or i1 %nan, %perhaps
  %third = select i1 %other, float %y, float %x
  %y.is.nan = fcmp uno float %y, 0.0
  %nan.of.y = or i1 %less, %y.is.nan
  %fourth = select i1 %nan.of.y, float %y, float %x
  %sum = fadd float %most, %least
  %sum.2 = fadd float %sum, %third
  %sum.3 = fadd float %sum.2, %fourth
  store float %sum.3, ptr addrspace(1) %b, align 4
  %over = fcmp ogt float %x, 8.900000e+01
  %limited = select i1 %over, float 8.900000e+01, float %x
  store volatile float %limited, ptr addrspace(1) %b, align 4
  %positive = fcmp ogt float %x, 0.000000e+00
  %relu = select i1 %positive, float %x, float 0.000000e+00
  store volatile float %relu, ptr addrspace(1) %b, align 4
  %below = fcmp olt float %x, 0.000000e+00
  %kept = select i1 %below, float 0.000000e+00, float %x
  store volatile float %kept, ptr addrspace(1) %b, align 4
  ret void
}

!0 = !{}
