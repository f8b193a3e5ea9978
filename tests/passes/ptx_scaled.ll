; A power of two moves from a number that was a half or a bfloat to the other factor, a sum with a constant, which becomes a fused
; multiply-add. It stays where the number may be any float, or is needed unscaled, and where the sum may cancel.
; run: ptx ptx-target+ptx-scaled
; expect: {sum:…} = call float @llvm.fma.f32(float %t, float 5.000000e-01, float 5.000000e-01)
; expect: %gelu = fmul float %b, {sum:…}
; expect: {less:…} = call float @llvm.fma.f32(float %t, float -2.500000e-01, float 5.000000e-01)
; expect: %fused = call float @llvm.fma.f32(float {less:…}, float %h, float %t)
; expect: %of_float = fmul float %scaled_t, %plus_one
; expect: %third = fmul float %third_b, %plus_one
; expect: %tiny = fmul float %small_b, %plus_one
; expect: %both = fmul float %half_again, %plus_u
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

declare float @llvm.fma.f32(float, float, float)

define void @__smelt_entry(ptr nocapture %context, i16 %bits, half %half, float %t, float %u) {
  %wide = zext i16 %bits to i32
  %up = shl i32 %wide, 16
  %b = bitcast i32 %up to float
  %half_b = fmul float %b, 5.000000e-01
  %one_t = fadd float %t, 1.000000e+00
  %gelu = fmul float %half_b, %one_t
  store float %gelu, ptr %context

  %h = fpext half %half to float
  %quarter_h = fmul float 2.500000e-01, %h
  %two_less = fsub float 2.000000e+00, %t
  %fused = call float @llvm.fma.f32(float %two_less, float %quarter_h, float %t)
  store float %fused, ptr %context

  %scaled_t = fmul float %t, 5.000000e-01
  %plus_one = fadd float %u, 1.000000e+00
  %of_float = fmul float %scaled_t, %plus_one
  store float %of_float, ptr %context
  %third_b = fmul float %b, 0x3FD5555560000000
  %third = fmul float %third_b, %plus_one
  store float %third, ptr %context
  %small_b = fmul float %b, 0x3EE0000000000000
  %tiny = fmul float %small_b, %plus_one
  store float %tiny, ptr %context

  %half_again = fmul float %b, 5.000000e-01
  %plus_u = fadd float %t, %u
  %both = fmul float %half_again, %plus_u
  store float %both, ptr %context
  ret void
}
