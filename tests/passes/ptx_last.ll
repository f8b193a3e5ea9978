; The last passes: pairs of rounded floats, float additions to neighbours, conversions, choices of zeros.
; run: ptx ptx-target+ptx-pack
; expect: cvt.rn.f16x2.f32 $0, $1, $2;{…}(float %b, float %a)
; absent: %word = or
; run: ptx ptx-target+ptx-atomics
; expect: red.relaxed.gpu.global.add.v4.f32
; absent: atomicrmw fadd
; run: ptx ptx-target+ptx-convert
; expect: call i32 @llvm.nvvm.f2i.rz(float %a)
; absent: call i32 @llvm.fptosi.sat
; run: ptx ptx-target+ptx-zero-signs
; expect: %{not:…} = fcmp uge float %a, 0.0
; expect: select i1 %{not:…}, float %a, float 0.0
declare i32 @llvm.fptosi.sat.i32.f32(float)

define void @__smelt_entry(ptr %context) {
  %a = load float, ptr %context
  %b = load float, ptr %context
  %low = fptrunc float %a to half
  %high = fptrunc float %b to half
  %low.bits = bitcast half %low to i16
  %high.bits = bitcast half %high to i16
  %low.word = zext i16 %low.bits to i32
  %high.word = zext i16 %high.bits to i32
  %shifted = shl i32 %high.word, 16
  %word = or i32 %shifted, %low.word
  store i32 %word, ptr %context
  %sums = load ptr addrspace(1), ptr %context
  %second = getelementptr i8, ptr addrspace(1) %sums, i64 4
  %third = getelementptr i8, ptr addrspace(1) %sums, i64 8
  %fourth = getelementptr i8, ptr addrspace(1) %sums, i64 12
  %1 = atomicrmw fadd ptr addrspace(1) %sums, float %a monotonic
  %2 = atomicrmw fadd ptr addrspace(1) %second, float %b monotonic
  %3 = atomicrmw fadd ptr addrspace(1) %third, float %a monotonic
  %4 = atomicrmw fadd ptr addrspace(1) %fourth, float %b monotonic
  %integer = call i32 @llvm.fptosi.sat.i32.f32(float %a)
  store i32 %integer, ptr %context
  %negative = fcmp olt float %a, 0.0
  %chosen = select i1 %negative, float 0.0, float %a
  store float %chosen, ptr %context
  ret void
}
