; A vector may lie at any multiple of its elements' size. GPUs settle that later (ptx_align.ll).
; run: simd alignment
; run: scalar alignment
; expect: define void @__smelt_entry(ptr align 8 %context)
; expect: load %vec, ptr %context, align 4
; expect: store i32 %x, ptr %context, align 4
; run: ptx alignment
; expect: load %vec, ptr %context, align 16
%vec = type { i32, i32, i32, i32 }

define void @__smelt_entry(ptr align 16 %context) {
  %v = load %vec, ptr %context, align 16
  %x = extractvalue %vec %v, 0
  store i32 %x, ptr %context, align 16
  ret void
}
