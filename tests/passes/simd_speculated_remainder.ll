; A remainder that an address is computed from: gangs whose lanes share the quotient load neighbours. Those of signed
; numbers must not be negative, nor the divisor. A small divisor fails at once.
; run: simd simd-gang threads=256 small=1
; expect: icmp sgt i32 %{n:…}, 255
; expect: %{q:…} = udiv i32 %{at:…}, %{n:…}
; expect: %{last:…} = add i32 %{at:…}, 255
; expect: %{either:…} = or i32 %{last:…}, %{n:…}
; expect: icmp sge i32 %{either:…}, 0
; expect: load <16 x float>, ptr %
declare i32 @__smelt_thread_position(i32)
declare ptr @__smelt_buffer_address(i32)

define void @__smelt_entry(ptr %context) {
  %in = call ptr @__smelt_buffer_address(i32 0)
  %out = call ptr @__smelt_buffer_address(i32 1)
  %size = call ptr @__smelt_buffer_address(i32 2)
  %i = call i32 @__smelt_thread_position(i32 0)
  %n = load i32, ptr %size, align 4
  %r = srem i32 %i, %n
  %wide = sext i32 %r to i64
  %from = getelementptr float, ptr %in, i64 %wide
  %x = load float, ptr %from, align 4
  %place = zext nneg i32 %i to i64
  %to = getelementptr float, ptr %out, i64 %place
  store float %x, ptr %to, align 4
  ret void
}
