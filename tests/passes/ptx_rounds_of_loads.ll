; A loop that only loads runs eight rounds at once, and the remaining ones up to four at once. In place of rounds past the
; end, the first one's element is loaded again.
; run: ptx ptx-target+ptx-rounds distinct=1
; expect: together:
; expect: load half
; expect: load half
; expect: load half
; expect: load half
; expect: load half
; expect: load half
; expect: load half
; expect: load half
; expect: fadd
; expect: some:
; expect: select i1 {…}, ptr addrspace(1) {…}, ptr addrspace(1)
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

define void @__smelt_entry(ptr nocapture readnone %context) {
entry:
  %a.at = getelementptr inbounds i8, ptr %context, i64 56
  %a = load ptr addrspace(1), ptr %a.at, align 8, !invariant.load !0, !align !1
  %o.at = getelementptr inbounds i8, ptr %context, i64 64
  %o = load ptr addrspace(1), ptr %o.at, align 8, !invariant.load !0, !align !1
  %n.at = getelementptr inbounds i8, ptr %context, i64 72
  %n = load i32, ptr %n.at, align 4, !invariant.load !0
  %none = icmp eq i32 %n, 0
  br i1 %none, label %end, label %round
round:
  %k = phi i32 [ %next, %round ], [ 0, %entry ]
  %sum = phi half [ %more, %round ], [ 0.0, %entry ]
  %index = zext i32 %k to i64
  %from = getelementptr inbounds half, ptr addrspace(1) %a, i64 %index
  %x = load half, ptr addrspace(1) %from, align 2
  %more = fadd half %sum, %x
  %next = add nuw i32 %k, 1
  %last = icmp eq i32 %next, %n
  br i1 %last, label %end, label %round
end:
  %all = phi half [ %more, %round ], [ 0.0, %entry ]
  store half %all, ptr addrspace(1) %o, align 2
  ret void
}

!0 = !{}
!1 = !{i64 16}
