; Loads at multiples of a stride get a second form for the stride 1, in which they are neighbours.
; run: simd simd-unit-strides cpu=x86-64-v3
; expect: icmp eq i32 %stride, 1
; expect: unit_strides:
; expect: , i64 1
; expect: , i64 2
; expect: mul i32 %stride, 2
; expect: phi float
define void @__smelt_entry(ptr %context) {
entry:
  %me = call i32 @__smelt_thread_position(i32 0)
  %x = call ptr @__smelt_buffer_address(i32 0)
  %given = call ptr @__smelt_buffer_address(i32 1)
  %stride = load i32, ptr %given
  %mine = mul i32 %me, %stride
  %wide = zext i32 %mine to i64
  %row = getelementptr float, ptr %x, i64 %wide
  %some = icmp ult i32 %me, 7
  br i1 %some, label %loads, label %done
loads:
  %one = zext i32 %stride to i64
  %first = getelementptr float, ptr %row, i64 %one
  %a = load float, ptr %first
  %twice = mul i32 %stride, 2
  %two = zext i32 %twice to i64
  %second = getelementptr float, ptr %row, i64 %two
  %b = load float, ptr %second
  %sum = fadd float %a, %b
  br label %done
done:
  %value = phi float [ 0.0, %entry ], [ %sum, %loads ]
  store float %value, ptr %row
  ret void
}
declare i32 @__smelt_thread_position(i32)
declare ptr @__smelt_buffer_address(i32)
