; What the SIMD engine cannot do it refuses with a sentence, and the scalar engine runs the kernel.
; run: simd simd-prepare
; fails: it copies or fills memory of a size known only at run time
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define void @__smelt_entry(ptr %context) {
  %size = load i64, ptr %context
  call void @llvm.memset.p0.i64(ptr %context, i8 0, i64 %size, i1 false)
  ret void
}
