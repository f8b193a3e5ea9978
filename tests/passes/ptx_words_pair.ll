; Two neighbouring bytes at an even address, among bytes without neighbours, are one load of 16 bits. LLVM would take a vector of
; two bytes apart through memory.
; run: ptx ptx-words
; expect: load i16, ptr addrspace(1) %even, align 2
; absent: <2 x i8>
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

define void @__smelt_entry(ptr nocapture readonly %context) {
  %a.at = getelementptr inbounds i8, ptr %context, i64 56
  %even = load ptr addrspace(1), ptr %a.at, align 8, !align !0
  %b.at = getelementptr inbounds i8, ptr %context, i64 64
  %b = load ptr addrspace(1), ptr %b.at, align 8
  %v0 = load i8, ptr addrspace(1) %even, align 2
  %p1 = getelementptr inbounds i8, ptr addrspace(1) %even, i64 1
  %v1 = load i8, ptr addrspace(1) %p1, align 1
  %p2 = getelementptr inbounds i8, ptr addrspace(1) %even, i64 32
  %v2 = load i8, ptr addrspace(1) %p2, align 1
  %p3 = getelementptr inbounds i8, ptr addrspace(1) %even, i64 64
  %v3 = load i8, ptr addrspace(1) %p3, align 1
  %p4 = getelementptr inbounds i8, ptr addrspace(1) %even, i64 96
  %v4 = load i8, ptr addrspace(1) %p4, align 1
  %p5 = getelementptr inbounds i8, ptr addrspace(1) %even, i64 128
  %v5 = load i8, ptr addrspace(1) %p5, align 1
  %s1 = add i8 %v0, %v1
  %s2 = xor i8 %s1, %v2
  %s3 = add i8 %s2, %v3
  %s4 = xor i8 %s3, %v4
  %s5 = add i8 %s4, %v5
  %s6 = xor i8 %s5, %v1
  store i8 %s6, ptr addrspace(1) %b
  ret void
}

!0 = !{i64 16}
