; The result of a reduction over the simdgroup, and what is computed from it, is a vector with an element for each simdgroup of the
; gang, also as a phi of a loop. A store by all lanes gets copies of the elements.
; run: simd simd-gang threads=64
; expect: phi <2 x float>
; expect: %{half:…} = fmul <2 x float> %
; expect: %{more:…} = fadd <2 x float> %{…}, %{half:…}
; expect: shufflevector <2 x float> %{more:…}, <2 x float> poison, <16 x i32> <i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1>
; absent: fmul <16 x float>
declare i32 @__smelt_thread_index()
declare ptr @__smelt_buffer_address(i32)
declare float @__smelt_simd_reduce_f32(i32, i32, float)
declare void @__smelt_threadgroup_barrier(i32, i32, ptr)
@file = internal constant [1 x i8] zeroinitializer

define void @__smelt_entry(ptr %context) {
entry:
  %a = call ptr @__smelt_buffer_address(i32 0)
  %b = call ptr @__smelt_buffer_address(i32 1)
  %thread = call i32 @__smelt_thread_index()
  %index = zext i32 %thread to i64
  %to = getelementptr inbounds float, ptr %b, i64 %index
  call void @__smelt_threadgroup_barrier(i32 0, i32 1, ptr @file)
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %next, %loop ]
  %total = phi float [ 0.0, %entry ], [ %more, %loop ]
  %kw = zext i32 %k to i64
  %at = add i64 %kw, %index
  %from = getelementptr inbounds float, ptr %a, i64 %at
  %x = load float, ptr %from
  %sum = call float @__smelt_simd_reduce_f32(i32 0, i32 32, float %x)
  %half = fmul float %sum, 5.000000e-01
  %more = fadd float %total, %half
  %next = add nuw nsw i32 %k, 1
  %again = icmp ult i32 %next, 9
  br i1 %again, label %loop, label %end
end:
  store float %more, ptr %to
  ret void
}
