; Gangs of groups of several rows lie in rows, if a thread cannot tell.
; run: simd join by_rows=1 cpu=x86-64-v3
; expect: gangs: in rows
declare i32 @__smelt_thread_position(i32)

define void @__smelt_entry(ptr %out) {
  %x = call i32 @__smelt_thread_position(i32 0)
  store i32 %x, ptr %out, align 4
  ret void
}
