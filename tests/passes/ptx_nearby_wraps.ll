; Loads in one block: x - 1 may wrap before it is extended, so LLVM does not know that it is next to x. It knows it of the pair that
; follows.
; run: ptx ptx-nearby small=1
; expect: %near = getelementptr i8, ptr addrspace(1) %a, i64 %{bytes:…}
; expect: %{first:…} = getelementptr i8, ptr addrspace(1) %near, i64 -4
; expect: load float, ptr addrspace(1) %{first:…}
; expect: %{second:…} = getelementptr i8, ptr addrspace(1) %near, i64 0
; expect: load float, ptr addrspace(1) %{second:…}
; expect: load float, ptr addrspace(1) %even.at
; expect: load float, ptr addrspace(1) %odd.at
; run: ptx ptx-nearby
; expect: load float, ptr addrspace(1) %left.at
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()

define void @__smelt_entry(ptr nocapture readonly %context) {
entry:
  %a = load ptr addrspace(1), ptr %context, align 8, !invariant.load !0
  %x = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %left = add i32 %x, -1
  %left.wide = zext i32 %left to i64
  %left.at = getelementptr inbounds float, ptr addrspace(1) %a, i64 %left.wide
  %l = load float, ptr addrspace(1) %left.at, align 4
  %wide = zext i32 %x to i64
  %at = getelementptr inbounds float, ptr addrspace(1) %a, i64 %wide
  %m = load float, ptr addrspace(1) %at, align 4
  %even = shl nuw nsw i32 %x, 1
  %even.wide = zext i32 %even to i64
  %even.at = getelementptr inbounds float, ptr addrspace(1) %a, i64 %even.wide
  %e = load float, ptr addrspace(1) %even.at, align 4
  %odd = or disjoint i32 %even, 1
  %odd.wide = zext i32 %odd to i64
  %odd.at = getelementptr inbounds float, ptr addrspace(1) %a, i64 %odd.wide
  %o = load float, ptr addrspace(1) %odd.at, align 4
  %s = fadd float %l, %m
  %t = fadd float %e, %o
  %u = fadd float %s, %t
  store float %u, ptr addrspace(1) %a, align 4
  ret void
}

!0 = !{}
