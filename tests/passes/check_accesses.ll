; An access asks the checker, with the argument that its address comes from; a barrier is announced.
; run: check check-accesses
; expect: %base = call ptr @__smelt_buffer_address(i32 0)
; expect: %{asked:…} = call ptr @smelt_check_access(ptr %place, ptr %base, i64 0, i64 4, i32 536870913, ptr @smelt_check_site{number:…})
; expect: %value = load float, ptr %{asked:…}
; expect: call void @smelt_check_barrier(i32 2, i32 0, ptr @smelt_check_site{…})
; expect: call void @__smelt_threadgroup_barrier
target triple = "x86_64-unknown-linux-gnu"
declare ptr @__smelt_buffer_address(i32)
declare void @__smelt_threadgroup_barrier(i32, i32, ptr)
define void @__smelt_entry(ptr %context) {
  %i = load i64, ptr @kept
  %base = call ptr @__smelt_buffer_address(i32 0)
  %place = getelementptr float, ptr %base, i64 %i
  %value = load float, ptr %place
  call void @__smelt_threadgroup_barrier(i32 2, i32 1, ptr null)
  store float %value, ptr %place
  ret void
}
@kept = constant i64 3
