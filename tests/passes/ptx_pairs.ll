; Two stores of halfs, 16 bytes apart, whose lanes 2k and 2k + 1 share words: one exchange, and one store of words. Between
; stores that read each other's place, nothing moves.
; run: ptx ptx-target+ptx-pairs threads=32
; expect: shfl.sync.bfly.i32(i32 -1, i32 %{…}, i32 1, i32 31)
; expect: call i32 @llvm.nvvm.prmt(
; expect: store i32 %{…}, ptr addrspace(3) %{…}, align 4
; expect: store half %second
; absent: store half %first
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@tile = internal addrspace(3) global [2048 x half] zeroinitializer, align 16

declare i32 @__smelt_thread_index()

define void @__smelt_entry(ptr nocapture readonly %context) {
  %a.at = getelementptr inbounds i8, ptr %context, i64 56
  %a = load ptr addrspace(1), ptr %a.at, align 8
  %me = call i32 @__smelt_thread_index()
  %low = and i32 %me, 1
  %rest = lshr i32 %me, 1
  %rows = shl i32 %rest, 6
  %place = or disjoint i32 %rows, %low
  %next = or disjoint i32 %place, 8
  %from = getelementptr inbounds half, ptr addrspace(1) %a, i32 %me
  %first = load half, ptr addrspace(1) %from
  %beyond = getelementptr inbounds i8, ptr addrspace(1) %from, i64 512
  %second = load half, ptr addrspace(1) %beyond
  %to = getelementptr inbounds [2048 x half], ptr addrspace(3) @tile, i32 0, i32 %place
  %behind = getelementptr inbounds [2048 x half], ptr addrspace(3) @tile, i32 0, i32 %next
  store half %first, ptr addrspace(3) %to
  store half %second, ptr addrspace(3) %behind
  %again = load half, ptr addrspace(3) %to
  store half %again, ptr addrspace(1) %from
  store half %second, ptr addrspace(3) %to
  ret void
}
