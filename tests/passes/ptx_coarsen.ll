; A grid of many threads: one thread of the hardware does the work of four neighbours, 16 bytes per access.
; run: ptx ptx-target+ptx-coarsen coarse=8 threads=64 aligned=1 small=1 distinct=1
; expect: load <4 x float>, ptr addrspace(1)
; expect: store <4 x float>
; run: ptx ptx-target+ptx-coarsen threads=64 aligned=1 small=1 distinct=1
; absent: <4 x float>
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

define void @__smelt_entry(ptr nocapture readnone %context) {
entry:
  %a.at = getelementptr inbounds i8, ptr %context, i64 56
  %a = load ptr addrspace(1), ptr %a.at, align 8, !invariant.load !0, !align !1
  %o.at = getelementptr inbounds i8, ptr %context, i64 64
  %o = load ptr addrspace(1), ptr %o.at, align 8, !invariant.load !0, !align !1
  %i = tail call i32 @__smelt_thread_position(i32 0), !range !2
  %index = zext nneg i32 %i to i64
  %from = getelementptr inbounds float, ptr addrspace(1) %a, i64 %index
  %x = load float, ptr addrspace(1) %from, align 4
  %twice = fmul float %x, 2.000000e+00
  %to = getelementptr inbounds float, ptr addrspace(1) %o, i64 %index
  store float %twice, ptr addrspace(1) %to, align 4
  ret void
}

declare i32 @__smelt_thread_position(i32) memory(none)

!0 = !{}
!1 = !{i64 16}
!2 = !{i32 0, i32 2147483647}
