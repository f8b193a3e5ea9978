; A load behind a barrier, of a buffer that nothing in the kernel writes, moves up to the load before the barrier, with its
; address. One of a buffer that may be written stays.
; run: ptx ptx-target+ptx-early threads=32 aligned=1 distinct=1
; expect: %x = load float
; expect: getelementptr inbounds float, ptr addrspace(1) %b, i32 %me
; expect: load float, ptr addrspace(1)
; expect: call void @llvm.nvvm.barrier0()
; expect: store float %x, ptr addrspace(3)
; expect: %z = load float
; expect: store float %{…}, ptr addrspace(1) %own
; run: ptx ptx-target+ptx-early threads=32 aligned=1 distinct=0
; expect: %x = load float
; expect: call void @llvm.nvvm.barrier0()
; expect: %y = load float
; expect: %z = load float
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@tile = internal addrspace(3) global [32 x float] zeroinitializer, align 16

declare void @llvm.nvvm.barrier0()
declare i32 @__smelt_thread_index()

define void @__smelt_entry(ptr nocapture readonly %context) {
  %a.at = getelementptr inbounds i8, ptr %context, i64 56
  %a = load ptr addrspace(1), ptr %a.at, align 8
  %b.at = getelementptr inbounds i8, ptr %context, i64 64
  %b = load ptr addrspace(1), ptr %b.at, align 8
  %o.at = getelementptr inbounds i8, ptr %context, i64 72
  %o = load ptr addrspace(1), ptr %o.at, align 8
  %me = call i32 @__smelt_thread_index()
  %from = getelementptr inbounds float, ptr addrspace(1) %a, i32 %me
  %x = load float, ptr addrspace(1) %from
  call void @llvm.nvvm.barrier0()
  %slot = getelementptr inbounds [32 x float], ptr addrspace(3) @tile, i32 0, i32 %me
  store float %x, ptr addrspace(3) %slot
  %there = getelementptr inbounds float, ptr addrspace(1) %b, i32 %me
  %y = load float, ptr addrspace(1) %there
  %own = getelementptr inbounds float, ptr addrspace(1) %o, i32 %me
  %z = load float, ptr addrspace(1) %own
  %sum = fadd float %y, %z
  store float %y, ptr addrspace(1) %own
  store float %sum, ptr addrspace(3) %slot
  ret void
}
