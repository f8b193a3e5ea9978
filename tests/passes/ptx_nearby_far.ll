; A constant that is added to the pointer also counts as distance: here the shared index of 32 bits, x, would reach 2^31.
; run: ptx ptx-nearby small=1
; expect: load i8, ptr addrspace(1) %left.at
; expect: load i8, ptr addrspace(1) %right.at
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()

define void @__smelt_entry(ptr nocapture readonly %context) {
entry:
  %buffer = load ptr addrspace(1), ptr %context, align 8, !invariant.load !0
  %a = getelementptr i8, ptr addrspace(1) %buffer, i64 -1000000000
  %x = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %some = icmp ugt i32 %x, 1000000000
  br i1 %some, label %left, label %end
left:
  %left.index = add i32 %x, -1
  %left.wide = zext i32 %left.index to i64
  %left.at = getelementptr i8, ptr addrspace(1) %a, i64 %left.wide
  %l = load i8, ptr addrspace(1) %left.at
  %more = icmp ne i8 %l, 0
  br i1 %more, label %right, label %end
right:
  %right.index = add i32 %x, 1
  %right.wide = zext i32 %right.index to i64
  %right.at = getelementptr i8, ptr addrspace(1) %a, i64 %right.wide
  %r = load i8, ptr addrspace(1) %right.at
  store i8 %r, ptr addrspace(1) %buffer
  br label %end
end:
  ret void
}

!0 = !{}
