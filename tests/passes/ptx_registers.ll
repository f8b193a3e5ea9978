; A round that loads from four rows, eight loads, and nothing but arithmetic: a multiprocessor is to hold 896 threads, so that the loads may
; begin together. Not where the threadgroup's size is unknown, nor for larger groups.
; run: ptx ptx-target+ptx-registers threads=64
; expect: !"minctasm", i32 14
; run: ptx ptx-target+ptx-registers threads=256
; expect: !"minctasm", i32 3
; run: ptx ptx-target+ptx-registers threads=512
; absent: minctasm
; run: ptx ptx-target+ptx-registers
; absent: minctasm
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

define void @__smelt_entry(ptr nocapture readonly %context) {
  %a.at = getelementptr inbounds i8, ptr %context, i64 56
  %a = load ptr addrspace(1), ptr %a.at, align 8
  %row.at = getelementptr inbounds i8, ptr %context, i64 80
  %row = load i64, ptr %row.at, align 8
  br label %round
round:
  %p0 = phi ptr addrspace(1) [ %a, %0 ], [ %p.next, %round ]
  %sum = phi float [ 0.0, %0 ], [ %s7, %round ]
  %p1 = getelementptr i8, ptr addrspace(1) %p0, i64 %row
  %p2 = getelementptr i8, ptr addrspace(1) %p1, i64 %row
  %p3 = getelementptr i8, ptr addrspace(1) %p2, i64 %row
  %x0 = load float, ptr addrspace(1) %p0
  %s0 = fadd float %sum, %x0
  %q0 = getelementptr i8, ptr addrspace(1) %p0, i64 64
  %x1 = load float, ptr addrspace(1) %q0
  %s1 = fadd float %s0, %x1
  %x2 = load float, ptr addrspace(1) %p1
  %s2 = fadd float %s1, %x2
  %q1 = getelementptr i8, ptr addrspace(1) %p1, i64 64
  %x3 = load float, ptr addrspace(1) %q1
  %s3 = fadd float %s2, %x3
  %x4 = load float, ptr addrspace(1) %p2
  %s4 = fadd float %s3, %x4
  %q2 = getelementptr i8, ptr addrspace(1) %p2, i64 64
  %x5 = load float, ptr addrspace(1) %q2
  %s5 = fadd float %s4, %x5
  %x6 = load float, ptr addrspace(1) %p3
  %s6 = fadd float %s5, %x6
  %q3 = getelementptr i8, ptr addrspace(1) %p3, i64 64
  %x7 = load float, ptr addrspace(1) %q3
  %s7 = fadd float %s6, %x7
  %p.next = getelementptr i8, ptr addrspace(1) %p0, i64 128
  %more = fcmp olt float %s7, 1.0e6
  br i1 %more, label %round, label %end
end:
  store float %s7, ptr addrspace(1) %a
  ret void
}
