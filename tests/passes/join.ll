; A thread that is a group of its own has its position in the grid as the group's.
; run: simd join joined=1
; expect: call i32 @__smelt_thread_position(i32 0)
; expect: call i32 @__smelt_grid_threads(i32 0)
; absent: call i32 @__smelt_threadgroup_position(
; absent: call i32 @__smelt_lane(
declare i32 @__smelt_threadgroup_position(i32)
declare i32 @__smelt_grid_groups(i32)
declare i32 @__smelt_lane()

define void @__smelt_entry(ptr %context) {
  %group = call i32 @__smelt_threadgroup_position(i32 0)
  %groups = call i32 @__smelt_grid_groups(i32 0)
  %lane = call i32 @__smelt_lane()
  %a = mul i32 %group, %groups
  %b = add i32 %a, %lane
  store i32 %b, ptr %context
  ret void
}
