; Six bytes side by side, which begin anywhere, are parts of three words. The last one is loaded only if they reach it: if three bytes
; are before them in the first word.
; run: ptx ptx-target+ptx-words
; expect: {number:…} = call i64 asm "mov.b64 $0, $1;", "=l,l"(i64 %{…}) #{…}, !smelt.words
; expect: and i64 {number:…}, -4
; expect: {low:…} = trunc i64 {number:…} to i32
; expect: load i32, ptr addrspace(1) %{…}, align 4
; expect: load i32, ptr addrspace(1) %{…}, align 4
; expect: {before:…} = and i32 {low:…}, 3
; expect: {reaches:…} = icmp eq i32 {before:…}, 3
; expect: call i32 asm sideeffect "@$2 ld.global.b32 $0, [$1]; ", "=&r,l,b,~{memory}"(i64 %{…}, i1 {reaches:…})
; expect: call i32 @llvm.fshr.i32(i32
; absent: load i8
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

define void @__smelt_entry(ptr nocapture readonly %context) {
  %a.at = getelementptr inbounds i8, ptr %context, i64 56
  %a = load ptr addrspace(1), ptr %a.at, align 8
  %n.at = getelementptr inbounds i8, ptr %context, i64 80
  %n = load i64, ptr %n.at, align 8
  %p0 = getelementptr inbounds i8, ptr addrspace(1) %a, i64 %n
  %p1 = getelementptr inbounds i8, ptr addrspace(1) %p0, i64 1
  %p2 = getelementptr inbounds i8, ptr addrspace(1) %p0, i64 2
  %p3 = getelementptr inbounds i8, ptr addrspace(1) %p0, i64 3
  %p4 = getelementptr inbounds i8, ptr addrspace(1) %p0, i64 4
  %p5 = getelementptr inbounds i8, ptr addrspace(1) %p0, i64 5
  %x0 = load i8, ptr addrspace(1) %p0
  %x1 = load i8, ptr addrspace(1) %p1
  %x2 = load i8, ptr addrspace(1) %p2
  %x3 = load i8, ptr addrspace(1) %p3
  %x4 = load i8, ptr addrspace(1) %p4
  %x5 = load i8, ptr addrspace(1) %p5
  %s1 = add i8 %x0, %x1
  %s2 = xor i8 %s1, %x2
  %s3 = add i8 %s2, %x3
  %s4 = xor i8 %s3, %x4
  %s5 = add i8 %s4, %x5
  store i8 %s5, ptr addrspace(1) %a
  ret void
}
