; A join that a third way leads to, with the value of an earlier round: the load stays in its block.
; run: ptx ptx-target+ptx-ahead
; expect: ahead:
; expect: load float
; absent: ld.global.b32
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

declare void @llvm.nvvm.barrier0()

define void @__smelt_entry(ptr %context) {
entry:
  %array = load ptr addrspace(1), ptr %context, align 8
  br label %round
round:
  %n = phi i64 [ 0, %entry ], [ %n.next, %second ]
  %carried = phi float [ 0.000000e+00, %entry ], [ %value, %second ]
  %more = icmp ult i64 %n, 7
  %odd = and i64 %n, 1
  %skips = icmp eq i64 %odd, 1
  br i1 %skips, label %middle, label %before
before:
  br i1 %more, label %ahead, label %middle
ahead:
  %from = getelementptr inbounds float, ptr addrspace(1) %array, i64 %n
  %next = load float, ptr addrspace(1) %from, align 4
  br label %middle
middle:
  %value = phi float [ %next, %ahead ], [ %carried, %before ], [ %carried, %round ]
  call void @llvm.nvvm.barrier0()
  br i1 %more, label %use, label %second
use:
  store float %value, ptr addrspace(1) %array, align 4
  br label %second
second:
  %n.next = add i64 %n, 1
  %again = icmp ult i64 %n.next, 64
  br i1 %again, label %round, label %end
end:
  ret void
}
