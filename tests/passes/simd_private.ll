; A private array whose index counts bytes is interleaved, as the number of bytes is a multiple of an element's size.
; run: simd simd-gang
; expect: store <16 x float> zeroinitializer, ptr %
; expect: load <16 x float>, ptr %
; absent: masked.gather
; absent: masked.scatter
declare i32 @__smelt_lane()
declare ptr @__smelt_buffer_address(i32)

define void @__smelt_entry(ptr %context) {
entry:
  %array = alloca [64 x float], align 16
  %a = call ptr @__smelt_buffer_address(i32 0)
  %number = call ptr @__smelt_buffer_address(i32 1)
  %lane = call i32 @__smelt_lane()
  %index = zext i32 %lane to i64
  %to = getelementptr inbounds float, ptr %a, i64 %index
  %element = load i64, ptr %number
  br label %fill
fill:
  %byte = phi i64 [ 0, %entry ], [ %next, %fill ]
  %place = getelementptr inbounds i8, ptr %array, i64 %byte
  store float 0.0, ptr %place, align 4
  %next = add nuw nsw i64 %byte, 4
  %done = icmp eq i64 %next, 256
  br i1 %done, label %end, label %fill
end:
  %one = getelementptr inbounds [64 x float], ptr %array, i64 0, i64 %element
  %value = load float, ptr %one, align 4
  store float %value, ptr %to, align 4
  ret void
}
