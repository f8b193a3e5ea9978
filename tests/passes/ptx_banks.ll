; Two stores of words, 32 bytes apart. In each of them, lanes k and k + 16 use one bank: lanes from 16 on exchange the two. The
; last store stays after the load from its place.
; run: ptx ptx-target+ptx-banks threads=32
; expect: and i32 %{…}, 16
; expect: select i1 %{…}, i32 32, i32 0
; expect: select i1 %{…}, i32 -32, i32 0
; expect: select i1 %{…}, i32 %second, i32 %first
; expect: select i1 %{…}, i32 %first, i32 %second
; expect: store i32 %{…}, ptr addrspace(3) %{…}, align 4
; expect: store i32 %{…}, ptr addrspace(3) %{…}, align 4
; expect: store i32 %second, ptr addrspace(3) %to
; absent: store i32 %first
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@tile = internal addrspace(3) global [2048 x i32] zeroinitializer, align 16

declare i32 @__smelt_thread_index()

define void @__smelt_entry(ptr nocapture readonly %context) {
  %a.at = getelementptr inbounds i8, ptr %context, i64 56
  %a = load ptr addrspace(1), ptr %a.at, align 8
  %me = call i32 @__smelt_thread_index()
  %low = and i32 %me, 15
  %column = and i32 %low, 7
  %middle = and i32 %low, 8
  %further = shl i32 %middle, 1
  %high = lshr i32 %me, 4
  %rows = shl i32 %high, 6
  %within = or disjoint i32 %column, %further
  %place = or disjoint i32 %rows, %within
  %next = or disjoint i32 %place, 8
  %from = getelementptr inbounds i32, ptr addrspace(1) %a, i32 %me
  %first = load i32, ptr addrspace(1) %from
  %beyond = getelementptr inbounds i8, ptr addrspace(1) %from, i64 512
  %second = load i32, ptr addrspace(1) %beyond
  %to = getelementptr inbounds [2048 x i32], ptr addrspace(3) @tile, i32 0, i32 %place
  %behind = getelementptr inbounds [2048 x i32], ptr addrspace(3) @tile, i32 0, i32 %next
  store i32 %first, ptr addrspace(3) %to, align 4
  store i32 %second, ptr addrspace(3) %behind, align 4
  %again = load i32, ptr addrspace(3) %to, align 4
  store i32 %again, ptr addrspace(1) %from
  store i32 %second, ptr addrspace(3) %to, align 4
  ret void
}
