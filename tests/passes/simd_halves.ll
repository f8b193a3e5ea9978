; CPUs without arithmetic of halves compute with vectors of float instead. An operand is extended once per block.
; run: simd simd-halves cpu=x86-64-v3
; expect: %{x:…} = fpext <8 x half> %x to <8 x float>
; expect: %{y:…} = fpext <8 x half> %y to <8 x float>
; expect: %{sum:…} = fadd <8 x float> %{x:…}, %{y:…}
; expect: %{half:…} = fptrunc <8 x float> %{sum:…} to <8 x half>
; expect: %{wide:…} = fpext <8 x half> %{half:…} to <8 x float>
; expect: %{fused:…} = call <8 x float> @llvm.fma.v8f32(<8 x float> %{wide:…}, <8 x float> %{x:…}, <8 x float> {…}
; expect: %{result:…} = fptrunc <8 x float> %{fused:…} to <8 x half>
; expect: store <8 x half> %{result:…}
; expect: store <8 x float> %{x:…}
; expect: %{there:…} = fpext <8 x half> %{result:…} to <8 x float>
; expect: call <8 x float> @llvm.floor.v8f32(<8 x float> %{there:…})
; expect: fadd half %one, %one
; absent: fadd <8 x half>
define void @__smelt_entry(ptr %context) {
  %x = load <8 x half>, ptr %context
  %after = getelementptr i8, ptr %context, i64 16
  %y = load <8 x half>, ptr %after
  %sum = fadd <8 x half> %x, %y
  %fused = call <8 x half> @llvm.fma.v8f16(<8 x half> %sum, <8 x half> %x, <8 x half> splat (half 0xH3C00))
  store <8 x half> %fused, ptr %context
  %later = fpext <8 x half> %x to <8 x float>
  store <8 x float> %later, ptr %after
  br label %next
next:
  %floor = call <8 x half> @llvm.floor.v8f16(<8 x half> %fused)
  store <8 x half> %floor, ptr %after
  %one = load half, ptr %context
  %two = fadd half %one, %one
  store half %two, ptr %after
  ret void
}
declare <8 x half> @llvm.fma.v8f16(<8 x half>, <8 x half>, <8 x half>)
declare <8 x half> @llvm.floor.v8f16(<8 x half>)
