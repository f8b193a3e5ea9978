; A product of 64 bits, of which only the lower half is used, with its operands' sums and choices; not one that is used as a whole, too.
; run: simd simd-narrow-products
; expect: mul i32
; expect: select i1 %none, i32 0
; expect: sub i32 %me
; expect: trunc i64 %stride to i32
; expect: mul i32
; expect: store i32
; expect: %whole = mul i64 %wide, %stride
; absent: %scaled
; absent: %product
; absent: %rest = sub i64
define void @__smelt_entry(ptr %context) {
  %me = call i32 @__smelt_thread_position(i32 0)
  %out = call ptr @__smelt_buffer_address(i32 0)
  %size = load i64, ptr %out
  %stride.at = getelementptr i64, ptr %out, i64 1
  %stride = load i64, ptr %stride.at
  %none = icmp eq i64 %size, 0
  %wide = zext i32 %me to i64
  %quotient = udiv i64 %wide, %size
  %product = mul i64 %quotient, %size
  %chosen = select i1 %none, i64 0, i64 %product
  %rest = sub i64 %wide, %chosen
  %scaled = mul i64 %rest, %stride
  %low = trunc i64 %scaled to i32
  %at = getelementptr i32, ptr %out, i32 %me
  store i32 %low, ptr %at
  %whole = mul i64 %wide, %stride
  %half = trunc i64 %whole to i32
  store i32 %half, ptr %at
  store i64 %whole, ptr %out
  ret void
}

declare i32 @__smelt_thread_position(i32)
declare ptr @__smelt_buffer_address(i32)
