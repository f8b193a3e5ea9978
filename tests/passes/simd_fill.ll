; A fill of a private array has words of the array's elements, so that lanes' elements can be interleaved.
; run: simd simd-prepare
; expect: store i32 0, ptr %
; absent: store i64
; absent: call void @llvm.memset
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define void @__smelt_entry(ptr %context) {
  %array = alloca [16 x float], align 16
  call void @llvm.memset.p0.i64(ptr align 16 %array, i8 0, i64 64, i1 false)
  %i = load i64, ptr %context
  %place = getelementptr float, ptr %array, i64 %i
  %value = load float, ptr %place
  store float %value, ptr %context
  ret void
}
