; A store that two ways have in common goes back to their ends if one of them stores to a neighbour; one that has none stays.
; run: ptx ptx-target+ptx-sunk
; expect: many:
; expect: store float 2.000000e+00, ptr addrspace(1) %{place:…}
; expect: store float 3.000000e+00
; expect: br label %join
; expect: few:
; expect: store float 5.000000e+00
; expect: br label %join
; expect: join:
; expect: br i1 %c, label %other, label %end
; expect: end:
; expect: phi float
; expect: store float
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

define void @__smelt_entry(ptr nocapture readonly %context) {
entry:
  %o = load ptr addrspace(1), ptr %context, align 8, !invariant.load !0
  %n.at = getelementptr inbounds i8, ptr %context, i64 8
  %n = load i32, ptr %n.at, align 4, !invariant.load !0
  %c = icmp ugt i32 %n, 1
  br i1 %c, label %many, label %few
many:
  %o.1 = getelementptr inbounds i8, ptr addrspace(1) %o, i64 4
  store float 2.0, ptr addrspace(1) %o.1, align 4
  br label %join
few:
  br label %join
join:
  %step = phi i64 [ 8, %many ], [ 0, %few ]
  %value = phi float [ 3.0, %many ], [ 5.0, %few ]
  %o.2 = getelementptr inbounds i8, ptr addrspace(1) %o, i64 %step
  store float %value, ptr addrspace(1) %o.2, align 4
  br i1 %c, label %other, label %end
other:
  %o.3 = getelementptr inbounds i8, ptr addrspace(1) %o, i64 100
  store float 2.0, ptr addrspace(1) %o.3, align 4
  br label %end
end:
  %last = phi float [ 1.0, %other ], [ 4.0, %join ]
  %o.4 = getelementptr inbounds i8, ptr addrspace(1) %o, i64 200
  store float %last, ptr addrspace(1) %o.4, align 4
  ret void
}

!0 = !{}
