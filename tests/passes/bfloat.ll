; bfloats are computed as floats and rounded by integer arithmetic; GPUs have an instruction for it.
; run: simd bfloat
; run: scalar bfloat
; expect: fadd float %
; expect: lshr i32 %{…}, 16
; expect: store i16 %
; absent: fadd bfloat
; run: ptx bfloat
; expect: cvt.rn.bf16.f32
; absent: fadd bfloat
define void @__smelt_entry(ptr %context) {
  %x = load bfloat, ptr %context
  %sum = fadd bfloat %x, %x
  store bfloat %sum, ptr %context
  ret void
}
