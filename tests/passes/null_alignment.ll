; LLVM infers that null is aligned to 2^32 bytes, which is more than passes can read.
; run: simd null-alignment
; run: scalar null-alignment
; run: ptx ptx-target+null-alignment
; expect: load float, ptr addrspace(1) null, align 4
; expect: store i32 %k, ptr addrspace(1) null, align 4
; expect: store float %x, ptr %context, align 2
define void @__smelt_entry(ptr %context) {
  %k = load i32, ptr %context
  %x = load float, ptr addrspace(1) null, align 4294967296
  store i32 %k, ptr addrspace(1) null, align 4294967296
  store float %x, ptr %context, align 2
  ret void
}
