; Rounds that store to where they load from run one at a time: those elements are in the nearest cache.
; run: ptx ptx-target+ptx-rounds distinct=1
; expect: round:
; expect: store float %twice, ptr addrspace(1) %w.from
; absent: rounds:
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

define void @__smelt_entry(ptr nocapture readnone %context) {
entry:
  %a.at = getelementptr inbounds i8, ptr %context, i64 56
  %a = load ptr addrspace(1), ptr %a.at, align 8, !invariant.load !0, !align !1
  %w.at = getelementptr inbounds i8, ptr %context, i64 80
  %w = load ptr addrspace(1), ptr %w.at, align 8, !invariant.load !0, !align !1
  %b.at = getelementptr inbounds i8, ptr %context, i64 88
  %b = load ptr addrspace(1), ptr %b.at, align 8, !invariant.load !0, !align !1
  %p.at = getelementptr inbounds i8, ptr %context, i64 96
  %p = load ptr addrspace(1), ptr %p.at, align 8, !invariant.load !0, !align !1
  %n.at = getelementptr inbounds i8, ptr %context, i64 72
  %n = load i32, ptr %n.at, align 4, !invariant.load !0
  %none = icmp eq i32 %n, 0
  br i1 %none, label %end, label %round
round:
  %k = phi i32 [ %next, %round ], [ 0, %entry ]
  %index = zext i32 %k to i64
  %from = getelementptr inbounds float, ptr addrspace(1) %a, i64 %index
  %x = load float, ptr addrspace(1) %from, align 4
  %w.from = getelementptr inbounds float, ptr addrspace(1) %w, i64 %index
  %v = load float, ptr addrspace(1) %w.from, align 4
  %b.from = getelementptr inbounds float, ptr addrspace(1) %b, i64 %index
  %u = load float, ptr addrspace(1) %b.from, align 4
  %scaled = fmul float %x, %v
  %twice = fadd float %scaled, %u
  store float %twice, ptr addrspace(1) %w.from, align 4
  %next = add nuw i32 %k, 1
  %last = icmp eq i32 %next, %n
  br i1 %last, label %end, label %round
end:
  ret void
}

!0 = !{}
!1 = !{i64 16}
