; Loads under many guards of their own: the next kernel is not let start, which would keep them from being predicated.
; run: ptx ptx-target+ptx-previous
; expect: griddepcontrol.wait
; absent: launch_dependents
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()

define void @__smelt_entry(ptr %context) {
entry:
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %a = icmp ult i32 %thread, 40
  br i1 %a, label %first, label %second

first:
  %x = load i32, ptr addrspace(1) null
  store i32 %x, ptr addrspace(3) null
  br label %second

second:
  %b = icmp ult i32 %thread, 20
  br i1 %b, label %second.load, label %third

second.load:
  %y = load i32, ptr addrspace(1) null
  store i32 %y, ptr addrspace(3) null
  br label %third

third:
  %c = icmp ult i32 %thread, 10
  br i1 %c, label %third.load, label %end

third.load:
  %z = load i32, ptr addrspace(1) null
  store i32 %z, ptr addrspace(3) null
  br label %end

end:
  ret void
}
