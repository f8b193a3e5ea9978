; Bfloats of a loaded vector become floats by one operation on the word that holds two of them: a shift or a mask. Vectors of which a
; part is used otherwise, or that are less aligned than their size, stay.
; run: ptx ptx-target+ptx-halves
; expect: {words:…} = load <2 x i32>, ptr addrspace(1) %a
; expect: {high:…} = extractelement <2 x i32> {words:…}, i32 1
; expect: {masked:…} = and i32 {high:…}, -65536
; expect: {low:…} = extractelement <2 x i32> {words:…}, i32 0
; expect: {shifted:…} = shl i32 {low:…}, 16
; expect: %x = bitcast i32 {shifted:…} to float
; expect: %y = bitcast i32 {masked:…} to float
; expect: %kept = load <4 x i16>, ptr addrspace(1) %b
; expect: %unaligned = load <2 x i16>, ptr addrspace(1) %a
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

define void @__smelt_entry(ptr nocapture %context, ptr addrspace(1) %a, ptr addrspace(1) %b) {
  %four = load <4 x i16>, ptr addrspace(1) %a, align 8
  %first = extractelement <4 x i16> %four, i32 0
  %fourth = extractelement <4 x i16> %four, i32 3
  %first.wide = zext i16 %first to i32
  %first.bits = shl i32 %first.wide, 16
  %x = bitcast i32 %first.bits to float
  %fourth.wide = zext i16 %fourth to i32
  %fourth.bits = shl i32 %fourth.wide, 16
  %y = bitcast i32 %fourth.bits to float
  %sum = fadd float %x, %y
  store float %sum, ptr %context

  %kept = load <4 x i16>, ptr addrspace(1) %b, align 8
  %whole = extractelement <4 x i16> %kept, i32 1
  %whole.wide = zext i16 %whole to i32
  store i32 %whole.wide, ptr %context

  %unaligned = load <2 x i16>, ptr addrspace(1) %a, align 2
  %part = extractelement <2 x i16> %unaligned, i32 0
  %part.wide = zext i16 %part to i32
  %part.bits = shl i32 %part.wide, 16
  store i32 %part.bits, ptr %context
  ret void
}
