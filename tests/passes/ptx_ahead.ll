; A load is predicated, and its block removed, if its value is used under the same condition alone. A load that is used elsewhere stays.
; run: ptx ptx-target+ptx-ahead
; expect: @$2 ld.global.b32 $0, [$1]
; expect: call void @llvm.nvvm.barrier0()
; expect: %kept = load float, ptr addrspace(1) %kept.at
; absent: %next = load
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

declare void @llvm.nvvm.barrier0()

define void @__smelt_entry(ptr %context) {
entry:
  %array = load ptr addrspace(1), ptr %context, align 8
  %n.at = getelementptr inbounds i8, ptr %context, i64 8
  %n = load i64, ptr %n.at, align 8
  %more = icmp ult i64 %n, 64
  br i1 %more, label %ahead, label %middle
ahead:
  %from = getelementptr inbounds float, ptr addrspace(1) %array, i64 %n
  %next = load float, ptr addrspace(1) %from, align 4
  br label %middle
middle:
  %value = phi float [ %next, %ahead ], [ 0.000000e+00, %entry ]
  call void @llvm.nvvm.barrier0()
  br i1 %more, label %use, label %second
use:
  store float %value, ptr addrspace(1) %array, align 4
  br label %second
second:
  br i1 %more, label %again, label %end
again:
  %kept.at = getelementptr inbounds float, ptr addrspace(1) %array, i64 %n
  %kept = load float, ptr addrspace(1) %kept.at, align 4
  br label %end
end:
  %last = phi float [ %kept, %again ], [ 1.000000e+00, %second ]
  store float %last, ptr addrspace(1) %array, align 4
  ret void
}
