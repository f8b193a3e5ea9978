; A load of constant memory that may be thrown away stays, if its block also loads what lies behind it in the same object, as a
; later field of a structure of parameters (%height). Not so if that load may be thrown away, too (%first, %second), if it lies
; before it (%last), or in other memory (%other).
; run: scalar sink
; run: simd sink
; expect: %height = load i32, ptr addrspace(6) %at, align 4
; expect: %depth = load i32
; expect: wanted
; absent: %first = load
; absent: %second = load
; absent: %last = load
; absent: %other = load
; On GPUs, it moves.
; run: ptx sink
; absent: %height = load
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
%fields = type { i32, i32, i32 }
define void @__smelt_entry(ptr %context, ptr addrspace(6) %p, ptr addrspace(6) %q, ptr addrspace(6) %r, ptr addrspace(5) %d, i32 %x, i32 %y, ptr %out) {
entry:
  %at = getelementptr %fields, ptr addrspace(6) %p, i32 0, i32 1
  %height = load i32, ptr addrspace(6) %at
  %behind = getelementptr i8, ptr addrspace(6) %p, i64 8
  %depth = load i32, ptr addrspace(6) %behind
  %c = icmp ult i32 %x, %depth
  %d1 = icmp ult i32 %y, %height
  %both = select i1 %c, i1 %d1, i1 false
  %first = load i32, ptr addrspace(6) %q
  %q1 = getelementptr i32, ptr addrspace(6) %q, i32 1
  %second = load i32, ptr addrspace(6) %q1
  %s1 = select i1 %c, i32 %first, i32 1
  %s2 = select i1 %c, i32 %second, i32 2
  %r0 = load i32, ptr addrspace(6) %r
  %r1 = getelementptr i32, ptr addrspace(6) %r, i32 1
  %last = load i32, ptr addrspace(6) %r1
  %s3 = select i1 %c, i32 %last, i32 %r0
  %other = load i32, ptr addrspace(5) %d
  %d2 = getelementptr i32, ptr addrspace(5) %d, i32 1
  %kept = load i32, ptr addrspace(5) %d2
  %s4 = select i1 %c, i32 %other, i32 %kept
  %t1 = add i32 %s1, %s2
  %t2 = add i32 %s3, %s4
  %t3 = add i32 %t1, %t2
  %t4 = select i1 %both, i32 %t3, i32 7
  store i32 %t4, ptr %out
  ret void
}
