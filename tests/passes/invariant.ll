; Loads from constant memory are invariant; those from device memory and volatile ones are not.
; run: simd invariant
; expect: %size = load i32, ptr addrspace(6) %constants, align 4, !invariant.load
; absent: %element = load i32, ptr addrspace(1) %data, align 4, !
; absent: %moving = load volatile i32, ptr addrspace(6) %constants, align 4, !
define void @__smelt_entry(ptr %context, ptr addrspace(6) %constants, ptr addrspace(1) %data) {
  %size = load i32, ptr addrspace(6) %constants, align 4
  %element = load i32, ptr addrspace(1) %data, align 4
  %moving = load volatile i32, ptr addrspace(6) %constants, align 4
  %sum = add i32 %size, %element
  %all = add i32 %sum, %moving
  store i32 %all, ptr %context, align 4
  ret void
}
