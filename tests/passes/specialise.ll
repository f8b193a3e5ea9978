; Sizes that the shape of a launch knows become constants; other numbers get their range.
; run: simd specialise threads=64
; run: ptx specialise threads=64
; expect: store i32 64, ptr %context
; expect: store i32 0, ptr %context
; expect: %position = call i32 @__smelt_thread_position(i32 0)
; expect: store i32 %groups, ptr %context
; run: simd specialise threads=64 masked=1
; expect: %size = call i32 @__smelt_threadgroup_size(i32 0), !range
; run: scalar specialise threads=64
; expect: %size = call i32 @__smelt_threadgroup_size(i32 0)
; absent: !range
declare i32 @__smelt_threadgroup_size(i32)
declare i32 @__smelt_position_in_threadgroup(i32)
declare i32 @__smelt_thread_position(i32)
declare i32 @__smelt_grid_groups(i32)

define void @__smelt_entry(ptr %context) {
  %size = call i32 @__smelt_threadgroup_size(i32 0)
  store i32 %size, ptr %context
  %y = call i32 @__smelt_position_in_threadgroup(i32 1)
  store i32 %y, ptr %context
  %position = call i32 @__smelt_thread_position(i32 0)
  store i32 %position, ptr %context
  %groups = call i32 @__smelt_grid_groups(i32 0)
  store i32 %groups, ptr %context
  ret void
}
