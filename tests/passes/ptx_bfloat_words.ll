; Bfloats that only become floats are loaded as words: an upper half stays where it is. Elements of a vector that are also used as
; integers stay parts of a vector of 16-bit numbers.
; run: ptx ptx-target+ptx-bfloat-words
; expect: {words:…} = load <2 x i32>, ptr addrspace(1) %array, align 8
; expect: = extractelement <2 x i32> {words:…}, i32 0
; expect: = shl i32 %{…}, 16
; expect: = extractelement <2 x i32> {words:…}, i32 1
; expect: = and i32 %{…}, -65536
; expect: %mixed = load <2 x i16>, ptr addrspace(1) %more, align 4
define void @__smelt_entry(ptr %context) {
  %array = load ptr addrspace(1), ptr %context, !align !0
  %four = load <4 x i16>, ptr addrspace(1) %array, align 8
  %first = extractelement <4 x i16> %four, i64 0
  %first.wide = zext i16 %first to i32
  %first.bits = shl nuw i32 %first.wide, 16
  %last = extractelement <4 x i16> %four, i64 3
  %last.wide = zext i16 %last to i32
  %last.bits = shl nuw i32 %last.wide, 16
  %x = bitcast i32 %first.bits to float
  %y = bitcast i32 %last.bits to float
  %sum = fadd float %x, %y
  %more = getelementptr i8, ptr addrspace(1) %array, i64 8
  %mixed = load <2 x i16>, ptr addrspace(1) %more, align 4
  %low = extractelement <2 x i16> %mixed, i64 0
  %low.wide = zext i16 %low to i32
  %low.bits = shl nuw i32 %low.wide, 16
  %z = bitcast i32 %low.bits to float
  %high = extractelement <2 x i16> %mixed, i64 1
  %all = fadd float %sum, %z
  store float %all, ptr addrspace(1) %array, align 4
  store i16 %high, ptr addrspace(1) %more, align 2
  ret void
}
!0 = !{i64 16}
