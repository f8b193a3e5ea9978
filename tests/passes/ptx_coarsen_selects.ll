; In a loop over the grid, branches that only choose what is computed become selects, and neighbours' elements are one access.
; Without coarsening, they stay branches.
; run: ptx ptx-target+ptx-coarsen coarse=1 threads=64 aligned=1 small=1 distinct=1
; expect: load <8 x i16>, ptr addrspace(1)
; expect: select i1 %{…}, i16 %{…}, i16 %
; expect: store <8 x i16>
; run: ptx ptx-target+ptx-coarsen threads=64 aligned=1 small=1 distinct=1
; expect: br i1 %large, label %meet, label %small
; absent: <8 x i16>
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

define void @__smelt_entry(ptr nocapture readnone %context) {
entry:
  %a.at = getelementptr inbounds i8, ptr %context, i64 56
  %a = load ptr addrspace(1), ptr %a.at, align 8, !invariant.load !0, !align !1
  %o.at = getelementptr inbounds i8, ptr %context, i64 64
  %o = load ptr addrspace(1), ptr %o.at, align 8, !invariant.load !0, !align !1
  %n.at = getelementptr inbounds i8, ptr %context, i64 72
  %n = load i32, ptr %n.at, align 8, !invariant.load !0
  %first = tail call i32 @__smelt_thread_position(i32 0), !range !2
  %some = icmp ult i32 %first, %n
  br i1 %some, label %loop, label %end

loop:
  %i = phi i32 [ %first, %entry ], [ %next, %meet ]
  %index = zext i32 %i to i64
  %from = getelementptr inbounds i16, ptr addrspace(1) %a, i64 %index
  %x = load i16, ptr addrspace(1) %from, align 2
  %large = icmp sgt i16 %x, 5
  br i1 %large, label %meet, label %small

small:
  %y = mul nsw i16 %x, 3
  %odd = icmp eq i16 %y, 9
  br i1 %odd, label %nine, label %meet

nine:
  %z = add nsw i16 %y, 7
  br label %meet

meet:
  %v = phi i16 [ %x, %loop ], [ %y, %small ], [ %z, %nine ]
  %to = getelementptr inbounds i16, ptr addrspace(1) %o, i64 %index
  store i16 %v, ptr addrspace(1) %to, align 2
  %next = add i32 %i, 1000
  %more = icmp ult i32 %next, %n
  br i1 %more, label %loop, label %end

end:
  ret void
}

declare i32 @__smelt_thread_position(i32) memory(none)

!0 = !{}
!1 = !{i64 16}
!2 = !{i32 0, i32 2147483647}
