; Shifts of two words become funnel shifts. LLVM has an instruction for rotations.
; run: ptx ptx-target+ptx-funnel
; expect: %{…} = call i32 asm "shf.r.wrap.b32 $0, $2, $1, $3;", "=r,r,r,r"(i32 %high, i32 %low, i32 %count)
; expect: %{…} = call i32 asm "shf.l.wrap.b32 $0, $2, $1, $3;", "=r,r,r,r"(i32 %high, i32 %low, i32 8)
; expect: %rotated = call i32 @llvm.fshl.i32(i32 %low, i32 %low, i32 %count)
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

declare i32 @llvm.fshr.i32(i32, i32, i32)
declare i32 @llvm.fshl.i32(i32, i32, i32)

define void @__smelt_entry(ptr nocapture %context, i32 %high, i32 %low, i32 %count) {
  %right = call i32 @llvm.fshr.i32(i32 %high, i32 %low, i32 %count)
  store i32 %right, ptr %context
  %left = call i32 @llvm.fshl.i32(i32 %high, i32 %low, i32 8)
  store i32 %left, ptr %context
  %rotated = call i32 @llvm.fshl.i32(i32 %low, i32 %low, i32 %count)
  store i32 %rotated, ptr %context
  ret void
}
