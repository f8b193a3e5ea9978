; A copy of a small object becomes loads and stores of its parts: all are loaded before the first is stored.
; run: ptx ptx-memory,ptx-memory-inlined
; expect: load float, ptr %
; expect: load float, ptr %
; expect: load i32, ptr %
; expect: store float %
; expect: store float %
; expect: store i32 %
; absent: call void @llvm.memcpy
%part = type { [2 x float], i32 }
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define void @__smelt_entry(ptr %context) {
  %local = alloca %part
  call void @llvm.memcpy.p0.p0.i64(ptr align 4 %local, ptr align 4 %context, i64 12, i1 false)
  %x = load i32, ptr %local
  store i32 %x, ptr %context
  ret void
}
