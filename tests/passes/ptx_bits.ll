; A vector of bits is loaded as bytes, from which the bits are taken.
; run: ptx ptx-target+ptx-bits
; expect: %{…} = load <8 x i8>, ptr addrspace(1) %array, align 8
; absent: x i1>
define void @__smelt_entry(ptr %context) {
  %array = load ptr addrspace(1), ptr %context, !align !0
  %bits = load <64 x i1>, ptr addrspace(1) %array, align 8
  %a = extractelement <64 x i1> %bits, i64 0
  %b = extractelement <64 x i1> %bits, i64 8
  %c = extractelement <64 x i1> %bits, i64 61
  %ab = xor i1 %a, %b
  %abc = and i1 %ab, %c
  %sum = select i1 %abc, float 1.0, float 2.0
  store float %sum, ptr addrspace(1) %array, align 4
  ret void
}
!0 = !{i64 16}
