; 32 threads become two vectors of 16 lanes: neighbours are loaded at once, what is uniform once, and behind a
; divergent branch under a mask.
; run: simd simd-gang
; expect: define void @__smelt_entry(ptr {…}) {
; expect: %{scale:…} = load float, ptr %
; expect: load <16 x float>, ptr %
; expect: %{y:…} = fmul <16 x float> %
; expect: %{mask:…} = fcmp ogt <16 x float> %{y:…}, zeroinitializer
; expect: load <16 x float>, ptr %
; expect: call void @llvm.masked.store.v16f32.p0(<16 x float> %{y:…}, ptr %{to:…}, i32 4, <16 x i1> %{mask:…})
; expect: call void @llvm.masked.store.v16f32.p0(<16 x float> %
; absent: masked.gather
; absent: masked.load
declare i32 @__smelt_lane()
declare ptr @__smelt_buffer_address(i32)

define void @__smelt_entry(ptr %context) {
entry:
  %a = call ptr @__smelt_buffer_address(i32 0)
  %b = call ptr @__smelt_buffer_address(i32 1)
  %lane = call i32 @__smelt_lane()
  %index = zext i32 %lane to i64
  %from = getelementptr inbounds float, ptr %a, i64 %index
  %to = getelementptr inbounds float, ptr %b, i64 %index
  %scale = load float, ptr %a
  %x = load float, ptr %from
  %y = fmul float %x, %scale
  %positive = fcmp ogt float %y, 0.0
  br i1 %positive, label %then, label %end
then:
  store float %y, ptr %to
  br label %end
end:
  ret void
}
