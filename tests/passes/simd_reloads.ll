; After a store to another buffer, an element is not loaded again; after one to its own buffer, or to an unknown address, it is. So it is
; after a barrier.
; run: simd simd-reloads distinct=1
; expect: %a = load float
; expect: store float %a
; expect: store float %a
; expect: store float 2.0
; expect: %third = load float
; expect: store float %third
; expect: call void @__smelt_threadgroup_barrier
; expect: %fourth = load float
; absent: %second
; run: simd simd-reloads distinct=0
; expect: %second = load float
define void @__smelt_entry(ptr %context) {
  %x = call ptr @__smelt_buffer_address(i32 0)
  %y = call ptr @__smelt_buffer_address(i32 1)
  %to = getelementptr i8, ptr %y, i64 4
  %a = load float, ptr %x
  store float %a, ptr %y
  %second = load float, ptr %x
  store float %second, ptr %to
  store float 2.0, ptr %x
  %third = load float, ptr %x
  store float %third, ptr %y
  call void @__smelt_threadgroup_barrier(i32 1, i32 1, ptr null)
  %fourth = load float, ptr %x
  store float %fourth, ptr %to
  ret void
}
declare ptr @__smelt_buffer_address(i32)
declare void @__smelt_threadgroup_barrier(i32, i32, ptr)
