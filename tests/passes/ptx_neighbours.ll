; Neighbours are loaded at once where the address is known to be aligned: floats by four, bytes by two.
; run: ptx ptx-target+ptx-neighbours
; expect: %{…} = load <4 x float>, ptr addrspace(1) %{…}, align 16
; expect: %{…} = load i16, ptr addrspace(1) %{…}, align 2
; expect: %{…} = load float, ptr addrspace(1) %{…}, align 4
; expect: %{…} = load float, ptr addrspace(1) %{…}, align 4
; expect: store <2 x float>
; absent: load i8
define void @__smelt_entry(ptr %context) {
  %array = load ptr addrspace(1), ptr %context, !align !0
  %offset = load i64, ptr %context
  %four = shl i64 %offset, 2
  %a.at = getelementptr float, ptr addrspace(1) %array, i64 %four
  %a = load float, ptr addrspace(1) %a.at, align 4
  %b.at = getelementptr float, ptr addrspace(1) %a.at, i64 1
  %b = load float, ptr addrspace(1) %b.at, align 4
  %c.at = getelementptr float, ptr addrspace(1) %a.at, i64 2
  %c = load float, ptr addrspace(1) %c.at, align 4
  %d.at = getelementptr float, ptr addrspace(1) %a.at, i64 3
  %d = load float, ptr addrspace(1) %d.at, align 4
  %block = getelementptr [18 x i8], ptr addrspace(1) %array, i64 %offset
  %e.at = getelementptr i8, ptr addrspace(1) %block, i64 2
  %e = load i8, ptr addrspace(1) %e.at, align 1
  %f.at = getelementptr i8, ptr addrspace(1) %block, i64 3
  %f = load i8, ptr addrspace(1) %f.at, align 1
  %g.at = getelementptr float, ptr addrspace(1) %array, i64 %offset
  %g = load float, ptr addrspace(1) %g.at, align 4
  %h.at = getelementptr float, ptr addrspace(1) %g.at, i64 1
  %h = load float, ptr addrspace(1) %h.at, align 4
  %ab = fadd float %a, %b
  %cd = fadd float %c, %d
  %gh = fadd float %g, %h
  %ef = add i8 %e, %f
  %bytes = uitofp i8 %ef to float
  %abcd = fadd float %ab, %cd
  %first = fadd float %abcd, %bytes
  store float %first, ptr addrspace(1) %a.at, align 4
  store float %gh, ptr addrspace(1) %b.at, align 4
  ret void
}
!0 = !{i64 16}
