; Gangs that lie in rows: the row is the same for all lanes and the lanes' places in it are neighbours, without a
; division of the thread's index, and accesses are masked, since the last gang of a row may hold fewer threads.
; run: simd simd-gang masked=1 rows=1 small=1 cpu=x86-64-v4
; expect: @llvm.masked.store.
; absent: udiv
; absent: urem
; absent: @llvm.masked.scatter.
declare i32 @__smelt_thread_position(i32)
declare ptr @__smelt_buffer_address(i32)

define void @__smelt_entry(ptr %context) {
  %out = call ptr @__smelt_buffer_address(i32 0)
  %x = call i32 @__smelt_thread_position(i32 0)
  %y = call i32 @__smelt_thread_position(i32 1)
  %row = mul nuw nsw i32 %y, 100
  %place = add nuw nsw i32 %row, %x
  %wide = zext nneg i32 %place to i64
  %address = getelementptr i32, ptr %out, i64 %wide
  store i32 %y, ptr %address, align 4
  ret void
}
