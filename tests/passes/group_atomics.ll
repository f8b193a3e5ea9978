; Atomic operations on threadgroup memory are plain; those on device memory stay.
; run: scalar group-updates
; expect: store atomic i32 0, ptr addrspace(3) %cell monotonic, align 4
; expect: %1 = load i32, ptr addrspace(3) %cell, align 4
; expect: %2 = add i32 %1, 5
; expect: store i32 %2, ptr addrspace(3) %cell, align 4
; expect: %3 = load i32, ptr addrspace(3) %cell, align 4
; expect: %4 = icmp eq i32 %3, %1
; expect: %5 = select i1 %4, i32 7, i32 %3
; expect: store i32 %5, ptr addrspace(3) %cell, align 4
; expect: atomicrmw add ptr %context, i32 1 monotonic, align 4
; run: simd group-accesses
; expect: store i32 0, ptr addrspace(3) %cell, align 4
; expect: atomicrmw add ptr addrspace(3) %cell, i32 5 monotonic, align 4
; expect: cmpxchg ptr addrspace(3) %cell, i32 %old, i32 7 monotonic monotonic, align 4
@cells = internal addrspace(3) global [4 x i32] undef, align 4
define void @__smelt_entry(ptr %context) {
  %cell = getelementptr i32, ptr addrspace(3) @cells, i64 1
  store atomic i32 0, ptr addrspace(3) %cell monotonic, align 4
  %old = atomicrmw add ptr addrspace(3) %cell, i32 5 monotonic, align 4
  %pair = cmpxchg ptr addrspace(3) %cell, i32 %old, i32 7 monotonic monotonic, align 4
  %done = extractvalue { i32, i1 } %pair, 1
  %one = atomicrmw add ptr %context, i32 1 monotonic, align 4
  %both = select i1 %done, i32 %one, i32 0
  store i32 %both, ptr %context
  ret void
}
