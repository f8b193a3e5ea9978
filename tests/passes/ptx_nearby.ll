; Loads of x - 1 and x + 1, behind different guards, and with indexes in different forms, add constants to the address of x. An index
; that may wrap can only do so where buffers are large.
; run: ptx ptx-nearby small=1
; expect: %{sum:…} = add i32
; expect: %{wide:…} = sext i32 %{sum:…} to i64
; expect: %{bytes:…} = mul i64 %{wide:…}, 4
; expect: %near = getelementptr i8, ptr addrspace(1) %a, i64 %{bytes:…}
; expect: left:
; expect: %{first:…} = getelementptr i8, ptr addrspace(1) %near, i64 -4
; expect: load float, ptr addrspace(1) %{first:…}
; expect: right:
; expect: %{second:…} = getelementptr i8, ptr addrspace(1) %near, i64 4
; expect: load float, ptr addrspace(1) %{second:…}
; run: ptx ptx-nearby
; expect: load float, ptr addrspace(1) %left.at
; expect: load float, ptr addrspace(1) %right.at
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()

define void @__smelt_entry(ptr nocapture readonly %context) {
entry:
  %a = load ptr addrspace(1), ptr %context, align 8, !invariant.load !0
  %n.at = getelementptr inbounds i8, ptr %context, i64 8
  %n = load i32, ptr %n.at, align 4, !invariant.load !0
  %x = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %not.first = icmp ne i32 %x, 0
  br i1 %not.first, label %left, label %middle
left:
  %left.row = mul i32 %n, 5
  %left.column = add i32 %x, -1
  %left.index = add i32 %left.row, %left.column
  %left.wide = zext i32 %left.index to i64
  %left.at = getelementptr inbounds float, ptr addrspace(1) %a, i64 %left.wide
  %l = load float, ptr addrspace(1) %left.at, align 4
  br label %middle
middle:
  %sum = phi float [ %l, %left ], [ 0.000000e+00, %entry ]
  %next = add i32 %x, 1
  %not.last = icmp ult i32 %next, %n
  br i1 %not.last, label %right, label %end
right:
  %right.row = mul nsw i32 %n, 5
  %right.index = add nsw i32 %next, %right.row
  %right.wide = sext i32 %right.index to i64
  %right.at = getelementptr inbounds float, ptr addrspace(1) %a, i64 %right.wide
  %r = load float, ptr addrspace(1) %right.at, align 4
  %both = fadd float %sum, %r
  br label %end
end:
  %all = phi float [ %both, %right ], [ %sum, %middle ]
  store float %all, ptr addrspace(1) %a, align 4
  ret void
}

!0 = !{}
