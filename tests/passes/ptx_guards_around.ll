; Code before the first guard and after the last one belongs to the chain if it accesses neighbours of the guards' elements: the form
; without branches loads all four. What comes before and after that stays in its place.
; run: ptx ptx-target+ptx-guards
; expect: load float, ptr addrspace(1) %far
; expect: br i1 %{all:…}, label %together, label %{rest:…}
; expect: load float, ptr addrspace(1) %a, align 4
; expect: br i1 %first.in, label %first, label %middle
; expect: together:
; expect: load float, ptr addrspace(1) %a, align 4
; expect: load float, ptr addrspace(1) %{…}
; expect: load float, ptr addrspace(1) %{…}
; expect: load float, ptr addrspace(1) %{…}
; expect: store float
; expect: store float
; expect: store float
; expect: br label %{end:…}
; expect: phi float {…} %together ]
; expect: call void @__smelt_threadgroup_barrier
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@tile = internal addrspace(3) global [64 x float] undef, align 4

declare void @__smelt_threadgroup_barrier(i32, i32, ptr)

define void @__smelt_entry(ptr nocapture readonly %context) {
entry:
  %a = load ptr addrspace(1), ptr %context, align 8, !invariant.load !0
  %n.at = getelementptr inbounds i8, ptr %context, i64 8
  %n = load i32, ptr %n.at, align 4, !invariant.load !0
  %first.in = icmp ugt i32 %n, 1
  %second.in = icmp ugt i32 %n, 2
  %far = getelementptr inbounds float, ptr addrspace(1) %a, i32 100
  %before = load float, ptr addrspace(1) %far, align 4
  %w = load float, ptr addrspace(1) %a, align 4
  store float %w, ptr addrspace(3) @tile, align 4
  br i1 %first.in, label %first, label %middle
first:
  %x.at = getelementptr inbounds float, ptr addrspace(1) %a, i32 1
  %x = load float, ptr addrspace(1) %x.at, align 4
  br label %middle
middle:
  %left = phi float [ %x, %first ], [ 0.000000e+00, %entry ]
  store float %left, ptr addrspace(3) getelementptr inbounds ([64 x float], ptr addrspace(3) @tile, i32 0, i32 1), align 4
  br i1 %second.in, label %second, label %end
second:
  %y.at = getelementptr inbounds float, ptr addrspace(1) %a, i32 2
  %y = load float, ptr addrspace(1) %y.at, align 4
  br label %end
end:
  %right = phi float [ %y, %second ], [ 0.000000e+00, %middle ]
  store float %right, ptr addrspace(3) getelementptr inbounds ([64 x float], ptr addrspace(3) @tile, i32 0, i32 2), align 4
  %z.at = getelementptr inbounds float, ptr addrspace(1) %a, i32 3
  %z = load float, ptr addrspace(1) %z.at, align 4
  %sum = fadd float %z, %before
  store float %sum, ptr addrspace(3) getelementptr inbounds ([64 x float], ptr addrspace(3) @tile, i32 0, i32 3), align 4
  call void @__smelt_threadgroup_barrier(i32 2, i32 1, ptr null)
  ret void
}

!0 = !{}
