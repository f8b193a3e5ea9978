; Loads from a threadgroup array that only holds copies of a constant table are marked; not if something else is stored to the array,
; or an element is copied to another place.
; run: ptx ptx-target+ptx-copied
; expect: %a = load float, ptr addrspace(3) %copy.k, align 4, !smelt.copied
; absent: %changed.k, align 4, !smelt.copied
; absent: %moved.k, align 4, !smelt.copied
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@table = internal addrspace(1) constant [4 x float] [float 0.0, float 1.0, float 2.0, float 4.0]
@copy = internal addrspace(3) global [4 x float] zeroinitializer
@changed = internal addrspace(3) global [4 x float] zeroinitializer
@moved = internal addrspace(3) global [4 x float] zeroinitializer

define void @__smelt_entry(ptr nocapture %context) {
  %t = load i32, ptr %context
  %k.at = getelementptr inbounds i8, ptr %context, i64 4
  %k = load i32, ptr %k.at
  %wide = zext i32 %t to i64
  %from = getelementptr inbounds [4 x float], ptr addrspace(1) @table, i64 0, i64 %wide
  %element = load float, ptr addrspace(1) %from, align 4
  %copy.t = getelementptr inbounds [4 x float], ptr addrspace(3) @copy, i32 0, i32 %t
  store float %element, ptr addrspace(3) %copy.t, align 4
  %changed.t = getelementptr inbounds [4 x float], ptr addrspace(3) @changed, i32 0, i32 %t
  store float %element, ptr addrspace(3) %changed.t, align 4
  store float 3.0, ptr addrspace(3) @changed, align 4
  %moved.t = getelementptr inbounds [4 x float], ptr addrspace(3) @moved, i32 0, i32 %k
  store float %element, ptr addrspace(3) %moved.t, align 4
  call void @llvm.nvvm.barrier0()
  %copy.k = getelementptr inbounds [4 x float], ptr addrspace(3) @copy, i32 0, i32 %k
  %a = load float, ptr addrspace(3) %copy.k, align 4
  %changed.k = getelementptr inbounds [4 x float], ptr addrspace(3) @changed, i32 0, i32 %k
  %b = load float, ptr addrspace(3) %changed.k, align 4
  %moved.k = getelementptr inbounds [4 x float], ptr addrspace(3) @moved, i32 0, i32 %k
  %c = load float, ptr addrspace(3) %moved.k, align 4
  store float %a, ptr %context
  store float %b, ptr %context
  store float %c, ptr %context
  ret void
}

declare void @llvm.nvvm.barrier0()
