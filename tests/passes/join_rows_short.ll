; Rows that leave most lanes of their gangs off do not pay with 256 bits.
; run: simd join by_rows=2 cpu=x86-64-v3
; absent: gangs: in rows
declare i32 @__smelt_thread_position(i32)

define void @__smelt_entry(ptr %out) {
  %x = call i32 @__smelt_thread_position(i32 0)
  store i32 %x, ptr %out, align 4
  ret void
}
