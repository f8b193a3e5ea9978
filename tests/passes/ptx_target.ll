; LLVM optimises for a GPU from the beginning; address spaces stay clang's until ptx-retarget makes them NVPTX's.
; run: ptx ptx-target
; expect: target triple = "nvptx64-nvidia-cuda"
; expect: load i32, ptr addrspace(5) %x
; run: ptx ptx-target+ptx-retarget
; expect: target triple = "nvptx64-nvidia-cuda"
; expect: %{far:…} = load i64, ptr %context
; expect: inttoptr i64 %{far:…} to ptr addrspace(3)
; expect: load i32, ptr addrspace(1) %x
; absent: addrspace(5)
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

define void @__smelt_entry(ptr %context) {
  %x = load ptr addrspace(5), ptr %context
  %shared = load ptr addrspace(3), ptr %context
  %y = load i32, ptr addrspace(5) %x
  store i32 %y, ptr addrspace(3) %shared
  ret void
}
