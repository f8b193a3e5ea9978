; A vector that is known to be aligned is loaded at once; of another the code asks when it runs.
; run: ptx ptx-target+ptx-align
; expect: %known = load <4 x float>, ptr addrspace(1) %array, align 16
; expect: %{aligned:…} = icmp eq i32 %{…}, 0
; expect: ld.global.v4
; absent: load <4 x float>, ptr addrspace(1) %somewhere
define void @__smelt_entry(ptr %context) {
  %array = load ptr addrspace(1), ptr %context, !align !0
  %known = load <4 x float>, ptr addrspace(1) %array, align 16
  %next = getelementptr i8, ptr addrspace(1) %array, i64 16
  store <4 x float> %known, ptr addrspace(1) %next, align 16
  %offset = load i64, ptr %context
  %somewhere = getelementptr float, ptr addrspace(1) %array, i64 %offset
  %asked = load <4 x float>, ptr addrspace(1) %somewhere, align 16
  store <4 x float> %asked, ptr addrspace(1) %array, align 16
  ret void
}
!0 = !{i64 16}
