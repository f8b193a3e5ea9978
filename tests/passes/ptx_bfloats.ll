; Products, sums and differences of bfloats that exist as bits become bfloat instructions. Those of numbers that were just
; rounded, and fused multiply-adds, stay operations on floats.
; run: ptx ptx-target+ptx-bfloats
; expect: call i16 asm "fma.rn.bf16 $0, $1, $2, $3;", "=h,h,h,h"(i16 %a, i16 %a, i16 -32768)
; expect: call i16 asm "fma.rn.bf16 $0, $1, $2, $3;", "=h,h,h,h"(i16 %b, i16 -16512, i16 %{…})
; expect: fadd float %{…}, 1.000000e+00
; expect: call float @llvm.fma.f32
; absent: fmul float
; absent: fsub float
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

define void @__smelt_entry(ptr nocapture %context) {
  %a = load i16, ptr %context
  %b.at = getelementptr i8, ptr %context, i64 2
  %b = load i16, ptr %b.at
  %a.wide = zext i16 %a to i32
  %a.high = shl i32 %a.wide, 16
  %a.float = bitcast i32 %a.high to float
  %b.wide = zext i16 %b to i32
  %b.high = shl i32 %b.wide, 16
  %b.float = bitcast i32 %b.high to float
  %product = fmul float %a.float, %a.float
  %square = call i16 asm "cvt.rn.bf16.f32 $0, $1;", "=h,f"(float %product)
  %square.wide = zext i16 %square to i32
  %square.high = shl i32 %square.wide, 16
  %square.float = bitcast i32 %square.high to float
  %less = fsub float %square.float, %b.float
  %difference = call i16 asm "cvt.rn.bf16.f32 $0, $1;", "=h,f"(float %less)
  store i16 %difference, ptr %context
  %root = call float @llvm.sqrt.f32(float %a.float)
  %rounded = call i16 asm "cvt.rn.bf16.f32 $0, $1;", "=h,f"(float %root)
  %rounded.wide = zext i16 %rounded to i32
  %rounded.high = shl i32 %rounded.wide, 16
  %rounded.float = bitcast i32 %rounded.high to float
  %more = fadd float %rounded.float, 1.0
  %sum = call i16 asm "cvt.rn.bf16.f32 $0, $1;", "=h,f"(float %more)
  store i16 %sum, ptr %context
  %both = call float @llvm.fma.f32(float %a.float, float %a.float, float %b.float)
  %fused = call i16 asm "cvt.rn.bf16.f32 $0, $1;", "=h,f"(float %both)
  store i16 %fused, ptr %context
  ret void
}

declare float @llvm.sqrt.f32(float)
declare float @llvm.fma.f32(float, float, float)
