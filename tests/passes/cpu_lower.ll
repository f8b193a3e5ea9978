; The scalar engine: intrinsics become loads from the thread's context and calls of the runtime.
; run: scalar lower
; expect: define void @__smelt_entry(ptr %context)
; expect: load i32, ptr %
; expect: call void @smelt_runtime_{…}barrier
; absent: @__smelt_lane
; absent: @__smelt_threadgroup_barrier
declare void @__smelt_threadgroup_barrier(i32, i32, ptr)
declare i32 @__smelt_lane()
declare ptr @__smelt_buffer_address(i32)

define void @__smelt_entry(ptr %context) {
  %lane = call i32 @__smelt_lane()
  %buffer = call ptr @__smelt_buffer_address(i32 0)
  call void @__smelt_threadgroup_barrier(i32 2, i32 1, ptr null)
  store i32 %lane, ptr %buffer
  ret void
}
