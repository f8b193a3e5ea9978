; Elements of arrays that a loop reads, up to a limit that is a value, too: their first six are listed. Not those whose number differs by
; thread, and not those of an array that the kernel writes. In code for given values the loop has gone.
; run: simd bindings+values
; expect: value: buffer 1, offset 0, bytes 4
; expect: value: buffer 1, offset 4, bytes 4
; expect: value: buffer 1, offset 8, bytes 4
; expect: value: buffer 1, offset 20, bytes 4
; absent: value: buffer 1, offset 24
; absent: value: buffer 0
; absent: value: buffer 2
; run: simd bindings+values value=3 value=7 value=11 value=13
; expect: udiv i32 %i, 13
; absent: load i32, ptr %size
; absent: br i1
%binding = type { i32, i32, i32, i32, i32, i32 }
@__smelt_bindings = constant [4 x %binding] [%binding { i32 1, i32 0, i32 4, i32 4, i32 1, i32 65800 }, %binding { i32 1, i32 1, i32 20, i32 4, i32 0, i32 65800 }, %binding { i32 1, i32 2, i32 4, i32 4, i32 0, i32 65800 }, %binding zeroinitializer]

declare ptr @__smelt_buffer_address(i32)
declare i32 @__smelt_thread_position(i32)

define void @__smelt_entry(ptr %context) {
  %out = call ptr @__smelt_buffer_address(i32 0)
  %sizes = call ptr @__smelt_buffer_address(i32 1)
  %table = call ptr @__smelt_buffer_address(i32 2)
  %i = call i32 @__smelt_thread_position(i32 0)
  %rank = load i32, ptr %sizes
  %some = icmp sgt i32 %rank, 0
  br i1 %some, label %loop, label %done
loop:
  %left = phi i32 [ %rank, %0 ], [ %d, %loop ]
  %rest = phi i32 [ %i, %0 ], [ %quotient, %loop ]
  %d = add nsw i32 %left, -1
  %wide = zext nneg i32 %left to i64
  %size.at = getelementptr i32, ptr %sizes, i64 %wide
  %size = load i32, ptr %size.at
  %quotient = udiv i32 %rest, %size
  %own.at = getelementptr i32, ptr %table, i32 %quotient
  %own = load i32, ptr %own.at
  %share = udiv i32 %i, %own
  %counted.at = getelementptr i32, ptr %out, i64 %wide
  %counted = load i32, ptr %counted.at
  %part = udiv i32 %share, %counted
  %at = getelementptr i32, ptr %out, i32 %rest
  store i32 %part, ptr %at
  %again = icmp sgt i32 %d, 0
  br i1 %again, label %loop, label %done
done:
  ret void
}
