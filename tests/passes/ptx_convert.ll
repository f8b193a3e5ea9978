; Small integers become floats by a subtraction from 2^23 plus the integer, which their mask or a permutation of bytes adds. Parts of
; words that are unsigned, or signed and alone, are extended instead; loads extend what they load.
; run: ptx ptx-target+ptx-convert
; expect: {long:…} = sext i8 %loaded to i32
; expect: sitofp i32 {long:…} to float
; expect: {byte:…} = call i32 @llvm.nvvm.prmt(i32 %word, i32 0, i32 17474)
; expect: uitofp i32 {byte:…} to float
; expect: {flipped:…} = xor i32 %word, -2147450880
; expect: call i32 @llvm.nvvm.prmt(i32 {flipped:…}, i32 1258291200, i32 29712)
; expect: fsub float %{…}, 0x4160100000000000
; expect: {top:…} = call i32 @llvm.nvvm.prmt(i32 %word, i32 0, i32 17475)
; expect: uitofp i32 {top:…} to float
; expect: {less:…} = sub i32 0, %word
; expect: {chosen:…} = select i1 %choice, i32 {less:…}, i32 %word
; expect: {sign:…} = call i32 @llvm.nvvm.prmt(i32 {chosen:…}, i32 0, i32 34944)
; expect: sitofp i32 {sign:…} to float
; expect: call i32 asm "lop3.b32 $0, $1, 0xf00, 0x4b000000, 0xea;", "=r,r"(i32 %shifted)
; expect: fsub float %{…}, 0x4160000000000000
; expect: {upper:…} = call i32 asm "lop3.b32 $0, $1, 0x30, 0x4b000000, 0xea;", "=r,r"(i32 %third)
; expect: or i32 %{…}, {upper:…}
; expect: fsub float %{…}, 8.388640e+06
; expect: uitofp i32 %wide to float
; expect: {lower:…} = zext i16 %pair to i32
; expect: call i32 @llvm.nvvm.prmt(i32 {lower:…}, i32 1258291200, i32 29761)
; expect: fsub float %{…}, 0x4160000600000000
; absent: sitofp i8
; absent: uitofp i8
; absent: sitofp i16
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

define void @__smelt_entry(ptr nocapture %context, i1 %choice) {
  %loaded = load i8, ptr %context
  %a = sitofp i8 %loaded to float
  store float %a, ptr %context
  %word = load i32, ptr %context
  %third = lshr i32 %word, 16
  %byte = trunc i32 %third to i8
  %b = uitofp i8 %byte to float
  store float %b, ptr %context
  %half = trunc i32 %word to i16
  %c = sitofp i16 %half to float
  store float %c, ptr %context
  %top = lshr i32 %word, 24
  %d = uitofp i32 %top to float
  store float %d, ptr %context
  %low = trunc i32 %word to i8
  %less = sub i8 0, %low
  %chosen = select i1 %choice, i8 %less, i8 %low
  %e = sitofp i8 %chosen to float
  store float %e, ptr %context
  %shifted = lshr i32 %word, 5
  %nibble = and i32 %shifted, 3840
  %f = uitofp i32 %nibble to float
  store float %f, ptr %context
  %lower = and i32 %word, 15
  %upper = and i32 %third, 48
  %six = or i32 %lower, %upper
  %centred = add i32 %six, -32
  %g = sitofp i32 %centred to float
  store float %g, ptr %context
  %wide = and i32 %word, 16777215
  %h = uitofp i32 %wide to float
  store float %h, ptr %context
  %pair = load i16, ptr %context
  %second = lshr i16 %pair, 8
  %small = trunc i16 %second to i8
  %extended = zext i8 %small to i32
  %below = add i32 %extended, -48
  %i = sitofp i32 %below to float
  store float %i, ptr %context
  ret void
}
