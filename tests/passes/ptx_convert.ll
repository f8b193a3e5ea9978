; Integers of 8 and 16 bits are extended to 32 bits before they become floats, by permutations of bytes. Loads extend what they load.
; run: ptx ptx-target+ptx-convert
; expect: %{long:…} = sext i8 %loaded to i32
; expect: sitofp i32 %{long:…} to float
; expect: %{byte:…} = call i32 @llvm.nvvm.prmt(i32 %word, i32 0, i32 17474)
; expect: uitofp i32 %{byte:…} to float
; expect: %{sign:…} = call i32 @llvm.nvvm.prmt(i32 %word, i32 0, i32 39184)
; expect: sitofp i32 %{sign:…} to float
; expect: %{top:…} = call i32 @llvm.nvvm.prmt(i32 %word, i32 0, i32 17475)
; expect: uitofp i32 %{top:…} to float
; expect: %{less:…} = sub i32 0, %word
; expect: %{chosen:…} = select i1 %choice, i32 %{less:…}, i32 %word
; expect: call i32 @llvm.nvvm.prmt(i32 %{chosen:…}, i32 0, i32 34944)
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
  ret void
}
