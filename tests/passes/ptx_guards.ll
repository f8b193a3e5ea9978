; Two guarded loads, each stored to threadgroup memory, in a kernel with a barrier: one test of a whole simdgroup chooses between a form
; with both loads before both stores and the code as it was.
; run: ptx ptx-target+ptx-guards
; expect: %{both:…} = select i1 %first.in, i1 %second.in, i1 false
; expect: %{bit:…} = zext i1 %{both:…} to i32
; expect: %{vote:…} = call i32 asm sideeffect "{…}vote.sync.all.pred{…}"(i32 %{bit:…})
; expect: %{all:…} = icmp ne i32 %{vote:…}, 0
; expect: br i1 %{all:…}, label %together, label %rest
; expect: rest:
; expect: br i1 %first.in, label %first, label %middle
; expect: together:
; expect: load float, ptr addrspace(1)
; expect: load float, ptr addrspace(1)
; expect: store float
; expect: br label %end
; expect: end:
; expect: phi float [ %y, %second ], [ 0.000000e+00, %middle ], [ %{…}, %together ]
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
  br i1 %first.in, label %first, label %middle
first:
  %x.at = getelementptr inbounds float, ptr addrspace(1) %a, i32 1
  %x = load float, ptr addrspace(1) %x.at, align 4
  br label %middle
middle:
  %left = phi float [ %x, %first ], [ 0.000000e+00, %entry ]
  store float %left, ptr addrspace(3) @tile, align 4
  br i1 %second.in, label %second, label %end
second:
  %y.at = getelementptr inbounds float, ptr addrspace(1) %a, i32 2
  %y = load float, ptr addrspace(1) %y.at, align 4
  br label %end
end:
  %right = phi float [ %y, %second ], [ 0.000000e+00, %middle ]
  store float %right, ptr addrspace(3) getelementptr inbounds ([64 x float], ptr addrspace(3) @tile, i32 0, i32 1), align 4
  call void @__smelt_threadgroup_barrier(i32 2, i32 1, ptr null)
  ret void
}

!0 = !{}
