; With 512 bits, and with 256 bits if the elements are words, a short loop first runs as many rounds at once as there are words in a cache line, then four, and then the rest.
; run: simd simd-columns cpu=x86-64-v4
; run: simd simd-columns cpu=x86-64-v3
; expect: rows:
; expect: load float
; expect: load float
; expect: load float
; expect: load float
; expect: load float
; expect: load float
; expect: load float
; expect: load float
; expect: load float
; expect: load float
; expect: load float
; expect: load float
; expect: load float
; expect: load float
; expect: load float
; expect: load float
; expect: label %rows, label %between
; expect: load float
; expect: load float
; expect: load float
; expect: load float
; expect: label %rows{…}, label %between{…}
; expect: load float
; expect: label %loop, label %done
define void @__smelt_entry(ptr %context) {
entry:
  %me = call i32 @__smelt_thread_position(i32 0)
  %x = call ptr @__smelt_buffer_address(i32 0)
  %length = call i32 @__smelt_grid_threads(i32 0)
  %row = mul i32 %me, %length
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %next, %loop ]
  %sum = phi float [ 0.0, %entry ], [ %more, %loop ]
  %at = add i32 %row, %k
  %wide = zext i32 %at to i64
  %place = getelementptr float, ptr %x, i64 %wide
  %element = load float, ptr %place
  %more = fadd float %sum, %element
  %next = add i32 %k, 1
  %again = icmp ult i32 %next, %length
  br i1 %again, label %loop, label %done
done:
  store float %more, ptr %x
  ret void
}
declare i32 @__smelt_thread_position(i32)
declare ptr @__smelt_buffer_address(i32)
declare i32 @__smelt_grid_threads(i32)
