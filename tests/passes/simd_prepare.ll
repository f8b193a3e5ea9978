; One return, loops in a simple form; no vectors within a thread, copies of memory written out, `or` of
; disjoint bits as a sum.
; run: simd simd-prepare
; expect: %{copied:…} = load i64, ptr %context, align 8
; expect: store i64 %{copied:…}, ptr %place, align 8
; expect: add nuw i32 %i, 4
; expect: phi float
; expect: ret void
; absent: call void @llvm.memcpy
; absent: <2 x float>
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define void @__smelt_entry(ptr %context) {
entry:
  %i = load i32, ptr %context
  %place = getelementptr i8, ptr %context, i32 16
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %place, ptr align 8 %context, i64 8, i1 false)
  %sum = or disjoint i32 %i, 4
  store i32 %sum, ptr %context
  %vector = load <2 x float>, ptr %place
  %twice = fadd <2 x float> %vector, %vector
  store <2 x float> %twice, ptr %place
  %early = icmp eq i32 %i, 0
  br i1 %early, label %out, label %round
out:
  ret void
round:
  %x = phi float [ 0.0, %entry ], [ %y, %round ]
  %y = fadd float %x, 1.0
  %again = fcmp olt float %y, 9.0
  br i1 %again, label %round, label %end
end:
  store float %y, ptr %context
  ret void
}
