; Conversions of vectors write whole registers.
; run: simd simd-registers cpu=x86-64-v3
; absent: asm
; expect: sitofp
define void @__smelt_entry(ptr %context) {
  %x = load <8 x i32>, ptr %context
  %y = sitofp <8 x i32> %x to <8 x float>
  store <8 x float> %y, ptr %context
  ret void
}
