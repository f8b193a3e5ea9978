; Integers in buffers that the kernel does not write: a divisor, a loop's limit, a stride. An element, an offset, a limit of a
; position and a float are not listed; nor is a divisor in a buffer that the kernel writes.
; run: simd bindings+values
; expect: value: buffer 1, offset 0, bytes 4
; expect: value: buffer 1, offset 4, bytes 4
; expect: value: buffer 1, offset 8, bytes 4
; absent: value: buffer 0
; absent: value: buffer 1, offset 12
; absent: value: buffer 1, offset 16
; absent: value: buffer 2
; run: simd bindings+values value=7 value=100 value=64
; expect: udiv i32 %i, 7
; expect: shl i32 %k, 6
; expect: icmp ult i32 %next, 100
; absent: value: buffer
%binding = type { i32, i32, i32, i32, i32, i32 }
@__smelt_bindings = constant [4 x %binding] [%binding { i32 1, i32 0, i32 4, i32 4, i32 1, i32 65800 }, %binding { i32 1, i32 1, i32 20, i32 4, i32 0, i32 65800 }, %binding { i32 1, i32 2, i32 4, i32 4, i32 1, i32 65800 }, %binding zeroinitializer]

declare ptr @__smelt_buffer_address(i32)
declare i32 @__smelt_thread_position(i32)

define void @__smelt_entry(ptr %context) {
  %out = call ptr @__smelt_buffer_address(i32 0)
  %sizes = call ptr @__smelt_buffer_address(i32 1)
  %counts = call ptr @__smelt_buffer_address(i32 2)
  %i = call i32 @__smelt_thread_position(i32 0)
  %divisor = load i32, ptr %sizes
  %limit.at = getelementptr i8, ptr %sizes, i64 4
  %limit = load i32, ptr %limit.at
  %stride.at = getelementptr i8, ptr %sizes, i64 8
  %stride = load i32, ptr %stride.at
  %offset.at = getelementptr i8, ptr %sizes, i64 12
  %offset = load i32, ptr %offset.at
  %end.at = getelementptr i8, ptr %sizes, i64 16
  %end = load i32, ptr %end.at
  %inside = icmp ult i32 %i, %end
  br i1 %inside, label %there, label %done
there:
  %row = udiv i32 %i, %divisor
  %count = load i32, ptr %counts
  %part = urem i32 %row, %count
  store i32 %part, ptr %counts
  br label %loop
loop:
  %k = phi i32 [ 0, %there ], [ %next, %loop ]
  %scaled = mul i32 %k, %stride
  %sum = add i32 %scaled, %offset
  %at = add i32 %sum, %part
  %address = getelementptr i32, ptr %out, i32 %at
  store i32 %row, ptr %address
  %next = add i32 %k, 1
  %again = icmp ult i32 %next, %limit
  br i1 %again, label %loop, label %done
done:
  ret void
}
