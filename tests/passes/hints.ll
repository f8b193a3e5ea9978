; Advice to compilers and processors goes.
; run: all hints
; absent: call void @llvm.prefetch
; absent: call i32 @llvm.annotation
; absent: call float @llvm.canon
; absent: call i1 @llvm.expect
; expect: %small = icmp ult i32 %i, 8
; expect: br i1 %small, {…}!prof
; expect: store float %value, ptr %context
@text = private constant [1 x i8] zeroinitializer
define void @__smelt_entry(ptr %context) {
  %i = load i32, ptr %context
  %x = load float, ptr %context
  call void @llvm.prefetch.p0(ptr %context, i32 0, i32 3, i32 1)
  %j = call i32 @llvm.annotation.i32.p0(i32 %i, ptr @text, ptr @text, i32 1)
  %small = icmp ult i32 %j, 8
  %likely = call i1 @llvm.expect.with.probability.i1(i1 %small, i1 true, double 0.9)
  br i1 %likely, label %yes, label %no
yes:
  br label %no
no:
  %value = phi float [ %x, %yes ], [ 1.0, %0 ]
  %same = call float @llvm.canonicalize.f32(float %value)
  store float %same, ptr %context
  ret void
}
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare i32 @llvm.annotation.i32.p0(i32, ptr, ptr, i32)
declare i1 @llvm.expect.with.probability.i1(i1, i1, double)
declare float @llvm.canonicalize.f32(float)
