; Code whose rows begin at multiples of 16 bytes if an argument is a multiple of 4 is there twice; the argument is tested once.
; run: ptx ptx-target+ptx-strides threads=32 aligned=1
; expect: and i32 %{…}, 3
; expect: icmp eq i32 %{…}, 0
; expect: br i1 %
; expect: call void @__smelt_simdgroup_barrier
; expect: and i32 %{…}, -4
; expect: call void @__smelt_simdgroup_barrier
; run: ptx ptx-target+ptx-strides threads=32 aligned=0
; absent: and i32
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

declare void @__smelt_simdgroup_barrier(i32)

define void @__smelt_entry(ptr nocapture readonly %context) {
entry:
  %a.at = getelementptr inbounds i8, ptr %context, i64 56
  %a = load ptr addrspace(1), ptr %a.at, align 8, !invariant.load !0, !align !1
  %o.at = getelementptr inbounds i8, ptr %context, i64 64
  %o = load ptr addrspace(1), ptr %o.at, align 8, !invariant.load !0, !align !1
  %n.at = getelementptr inbounds i8, ptr %context, i64 80
  %n = load i32, ptr %n.at, align 4, !invariant.load !0
  br label %round
round:
  %k = phi i32 [ %next, %round ], [ 0, %entry ]
  %row = mul i32 %k, %n
  %index = zext i32 %row to i64
  %from = getelementptr inbounds float, ptr addrspace(1) %a, i64 %index
  %x = load float, ptr addrspace(1) %from, align 4
  %from.1 = getelementptr inbounds i8, ptr addrspace(1) %from, i64 4
  %y = load float, ptr addrspace(1) %from.1, align 4
  %from.2 = getelementptr inbounds i8, ptr addrspace(1) %from, i64 8
  %z = load float, ptr addrspace(1) %from.2, align 4
  %from.3 = getelementptr inbounds i8, ptr addrspace(1) %from, i64 12
  %w = load float, ptr addrspace(1) %from.3, align 4
  %xy = fadd float %x, %y
  %zw = fadd float %z, %w
  %sum = fadd float %xy, %zw
  call void @__smelt_simdgroup_barrier(i32 1)
  store float %sum, ptr addrspace(1) %o, align 4
  %next = add nuw i32 %k, 1
  %last = icmp eq i32 %next, 4
  br i1 %last, label %end, label %round
end:
  ret void
}

!0 = !{}
!1 = !{i64 16}
