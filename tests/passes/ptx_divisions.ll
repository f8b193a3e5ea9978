; Of four neighbours' positions in an image, one is divided by the width, and its row by the height. The others' columns are one more, or 0
; in the next row. An index that may wrap is divided, and so is one that is two more.
; run: ptx ptx-divisions
; expect: urem i32 %row, %h
; expect: %{more:…} = add i32 %{column:…}, 1
; expect: icmp u{…} i32 %{more:…}, %w
; expect: udiv i32 %wrapped, %w
; expect: udiv i32 %i.3, %w
; absent: urem i32 %row.1
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()

define void @__smelt_entry(ptr nocapture readonly %context) {
entry:
  %a = load ptr addrspace(1), ptr %context, align 8, !invariant.load !0
  %w = load i32, ptr addrspace(1) %a, align 4
  %at.h = getelementptr i8, ptr addrspace(1) %a, i64 4
  %h = load i32, ptr addrspace(1) %at.h, align 4
  %at.k = getelementptr i8, ptr addrspace(1) %a, i64 8
  %k = load i32, ptr addrspace(1) %at.k, align 4
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %i = shl i32 %t, 1
  %row = udiv i32 %i, %w
  %column = urem i32 %i, %w
  %height = urem i32 %row, %h
  %i.1 = or disjoint i32 %i, 1
  %row.1 = udiv i32 %i.1, %w
  %column.1 = urem i32 %i.1, %w
  %height.1 = urem i32 %row.1, %h
  %wrapped = add i32 %k, 1
  %q = udiv i32 %k, %w
  %q.1 = udiv i32 %wrapped, %w
  %i.3 = add nuw i32 %i, 3
  %q.3 = udiv i32 %i.3, %w
  %s = xor i32 %height, %height.1
  %s.1 = xor i32 %s, %column
  %s.2 = xor i32 %s.1, %column.1
  %s.3 = xor i32 %s.2, %q
  %s.4 = xor i32 %s.3, %q.1
  %s.5 = xor i32 %s.4, %q.3
  store i32 %s.5, ptr addrspace(1) %a, align 4
  ret void
}

!0 = !{}
