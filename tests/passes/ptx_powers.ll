; The power of two that the prelude's exponentials multiply by has one factor that depends on the argument if the argument is not
; positive, and two otherwise; or if the numbers are not quite those of the prelude.
; run: ptx ptx-powers
; expect: %exponent = shl i32 %z.bits, 23
; expect: {factor:…} = bitcast i32 %exponent to float
; expect: %scaled = call float @llvm.fma.f32(float %e, float {factor:…}, float {factor:…})
; expect: %power = fmul float %scaled, 0x3800000000000000
; expect: %any.scaled = call float @llvm.fma.f32(float %e, float %any.first, float %any.first)
; expect: %any.power = fmul float %any.scaled, %any.second
; expect: %kept = fmul float %e, %first
; expect: %twice = fmul float %kept, %second
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

declare float @llvm.fma.f32(float, float, float)

define void @__smelt_entry(ptr nocapture %context, float %x, float %e) {
  %square = fmul float %x, %x
  %negative = fneg float %square
  %low = fcmp olt float %negative, -1.760000e+02
  %t = select i1 %low, float -1.760000e+02, float %negative
  %z = call float @llvm.fma.f32(float %t, float 0x3FF7154760000000, float 0x4168001FC0000000)
  %z.bits = bitcast float %z to i32
  %left = shl i32 %z.bits, 22
  %first.bits = and i32 %left, 2139095040
  %first = bitcast i32 %first.bits to float
  %all = shl i32 %z.bits, 23
  %second.bits = sub i32 %all, %first.bits
  %second = bitcast i32 %second.bits to float
  %scaled = call float @llvm.fma.f32(float %e, float %first, float %first)
  %power = fmul float %scaled, %second
  store volatile float %power, ptr %context
  %any.z = call float @llvm.fma.f32(float %x, float 0x3FF7154760000000, float 0x4168001FC0000000)
  %any.bits = bitcast float %any.z to i32
  %any.left = shl i32 %any.bits, 22
  %any.first.bits = and i32 %any.left, 2139095040
  %any.first = bitcast i32 %any.first.bits to float
  %any.all = shl i32 %any.bits, 23
  %any.second.bits = sub i32 %any.all, %any.first.bits
  %any.second = bitcast i32 %any.second.bits to float
  %any.scaled = call float @llvm.fma.f32(float %e, float %any.first, float %any.first)
  %any.power = fmul float %any.scaled, %any.second
  store volatile float %any.power, ptr %context
  %kept = fmul float %e, %first
  store volatile float %kept, ptr %context
  %twice = fmul float %kept, %second
  store volatile float %twice, ptr %context
  ret void
}
