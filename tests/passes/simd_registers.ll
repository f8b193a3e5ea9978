; A conversion to a float keeps the rest of its register: the code begins with a claim to have written all of them.
; run: simd simd-registers cpu=x86-64-v3
; expect: call void asm sideeffect "", "~{xmm0},~{xmm1},{…},~{xmm15}"()
; expect: sitofp
; run: simd simd-registers cpu=x86-64-v4
; expect: call void asm sideeffect "", "~{xmm0},~{xmm1},{…},~{xmm31}"()
; expect: sitofp
define void @__smelt_entry(ptr %context) {
  %x = load i32, ptr %context
  %y = sitofp i32 %x to float
  store float %y, ptr %context
  ret void
}
