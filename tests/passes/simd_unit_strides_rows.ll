; The length of a row is a stride that is hardly ever 1: accesses at other distances show it. No second form.
; run: simd simd-unit-strides cpu=x86-64-v3
; absent: unit_strides
; expect: ret void
define void @__smelt_entry(ptr %context) {
entry:
  %me = call i32 @__smelt_thread_position(i32 0)
  %x = call ptr @__smelt_buffer_address(i32 0)
  %given = call ptr @__smelt_buffer_address(i32 1)
  %length = load i32, ptr %given
  %mine = mul i32 %me, %length
  %wide = zext i32 %mine to i64
  %row = getelementptr float, ptr %x, i64 %wide
  br label %loads
loads:
  %one = zext i32 %length to i64
  %first = getelementptr float, ptr %row, i64 %one
  %a = load float, ptr %first
  %twice = mul i32 %length, 2
  %two = zext i32 %twice to i64
  %second = getelementptr float, ptr %row, i64 %two
  %b = load float, ptr %second
  %next = getelementptr float, ptr %second, i64 1
  %c = load float, ptr %next
  %some = fadd float %a, %b
  %sum = fadd float %some, %c
  store float %sum, ptr %row
  ret void
}
declare i32 @__smelt_thread_position(i32)
declare ptr @__smelt_buffer_address(i32)
