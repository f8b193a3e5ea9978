; Rounds that their guards may skip: before the guards of four rounds are computed, the loop goes on alone if the fourth round does not
; follow.
; run: ptx ptx-target+ptx-rounds distinct=1
; expect: rounds:
; expect: %{fourth:…} = icmp slt i32 %{…}, %n
; expect: %{known:…} = freeze i1 %{fourth:…}
; expect: br i1 %{known:…}, label %guards, label %round
; expect: guards:
; expect: select i1
; expect: br i1 %{…}, label %together, label %round
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
  %least.at = getelementptr inbounds i8, ptr %context, i64 76
  %least = load i32, ptr %least.at, align 4, !invariant.load !0
  %some = icmp sgt i32 %n, 0
  br i1 %some, label %round, label %end
round:
  %k = phi i32 [ %next, %join ], [ 0, %entry ]
  %in = icmp sgt i32 %k, %least
  br i1 %in, label %guarded, label %join
guarded:
  %index = zext i32 %k to i64
  %from = getelementptr inbounds float, ptr addrspace(1) %a, i64 %index
  %x = load float, ptr addrspace(1) %from, align 4
  %y.at = getelementptr inbounds float, ptr addrspace(1) %from, i64 100
  %y = load float, ptr addrspace(1) %y.at, align 4
  %sum = fadd float %x, %y
  %to = getelementptr inbounds float, ptr addrspace(1) %o, i64 %index
  store float %sum, ptr addrspace(1) %to, align 4
  br label %join
join:
  %next = add nuw i32 %k, 1
  %again = icmp slt i32 %next, %n
  br i1 %again, label %round, label %end
end:
  ret void
}

!0 = !{}
!1 = !{i64 16}
