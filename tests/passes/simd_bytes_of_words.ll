; Bytes at a stride of four: two loads, the second of which ends with the last byte.
; run: simd simd-gang threads=32 small=1
; expect: %{a:…} = load <8 x i32>, ptr %{…}, align 1
; expect: %{…} = getelementptr i8, ptr %{…}, i64 29
; expect: %{z:…} = load <8 x i32>, ptr %{…}, align 1
; expect: and <8 x i32> %{a:…}, <i32 255,
; expect: lshr <8 x i32> %{z:…}, <i32 24,
; expect: trunc <16 x i32> %{…} to <16 x i8>
declare i32 @__smelt_thread_position(i32)
declare ptr @__smelt_buffer_address(i32)

define void @__smelt_entry(ptr %context) {
  %in = call ptr @__smelt_buffer_address(i32 0)
  %out = call ptr @__smelt_buffer_address(i32 1)
  %i = call i32 @__smelt_thread_position(i32 0)
  %wide = zext nneg i32 %i to i64
  %word = getelementptr [4 x i8], ptr %in, i64 %wide
  %from = getelementptr i8, ptr %word, i64 1
  %x = load i8, ptr %from, align 1
  %y = zext i8 %x to i32
  %to = getelementptr i32, ptr %out, i64 %wide
  store i32 %y, ptr %to, align 4
  ret void
}
