; Loads move ahead of stores to other buffers, with what their addresses are computed from. A load from the buffer that is
; stored to stays.
; run: ptx ptx-target+ptx-early distinct=1
; expect: load float, ptr addrspace(1) %a
; expect: load i32, ptr %n.at
; expect: {index:…} = zext i32
; expect: ptr addrspace(1) %a, i64 {index:…}
; expect: load float, ptr addrspace(1)
; expect: store float %first
; expect: load float, ptr addrspace(1) %o
; expect: store float %own
; run: ptx ptx-target+ptx-early
; expect: store float %first
; expect: load float, ptr addrspace(1) %second
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

define void @__smelt_entry(ptr nocapture readnone %context) {
  %a.at = getelementptr inbounds i8, ptr %context, i64 56
  %a = load ptr addrspace(1), ptr %a.at, align 8, !invariant.load !0, !align !1
  %o.at = getelementptr inbounds i8, ptr %context, i64 64
  %o = load ptr addrspace(1), ptr %o.at, align 8, !invariant.load !0, !align !1
  %n.at = getelementptr inbounds i8, ptr %context, i64 72
  %first = load float, ptr addrspace(1) %a, align 4
  store float %first, ptr addrspace(1) %o, align 4
  %n = load i32, ptr %n.at, align 4, !invariant.load !0
  %index = zext i32 %n to i64
  %second = getelementptr inbounds float, ptr addrspace(1) %a, i64 %index
  %other = load float, ptr addrspace(1) %second, align 4
  %to = getelementptr inbounds float, ptr addrspace(1) %o, i64 1
  store float %other, ptr addrspace(1) %to, align 4
  %own = load float, ptr addrspace(1) %o, align 4
  %last = getelementptr inbounds float, ptr addrspace(1) %o, i64 2
  store float %own, ptr addrspace(1) %last, align 4
  ret void
}

!0 = !{}
!1 = !{i64 16}
