; A thread that reads its lane can tell which threads are in a gang: gangs take the threads in order.
; run: simd join by_rows=1 cpu=x86-64-v4
; absent: gangs: in rows
declare i32 @__smelt_lane()

define void @__smelt_entry(ptr %out) {
  %lane = call i32 @__smelt_lane()
  store i32 %lane, ptr %out, align 4
  ret void
}
