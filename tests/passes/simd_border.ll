; A border that other stores write, behind a detour that all lanes take or none: gangs inside it run without masks.
; run: simd simd-gang threads=32 small=1
; expect: = load <16 x i32>, ptr %{…}, align 4
; expect: = load <16 x i32>, ptr %{…}, align 4
; expect: = load <16 x i32>, ptr %{…}, align 4
; expect: store <16 x i32> zeroinitializer, ptr %
declare i32 @__smelt_thread_position(i32)
declare ptr @__smelt_buffer_address(i32)

define void @__smelt_entry(ptr %context) {
entry:
  %in = call ptr @__smelt_buffer_address(i32 0)
  %out = call ptr @__smelt_buffer_address(i32 1)
  %size = call ptr @__smelt_buffer_address(i32 2)
  %i = call i32 @__smelt_thread_position(i32 0)
  %n = load i32, ptr %size, align 4
  %large = icmp ugt i32 %n, 1000
  br i1 %large, label %half, label %rest

half:
  %less = lshr i32 %n, 1
  br label %rest

rest:
  %bound = phi i32 [ %n, %entry ], [ %less, %half ]
  %first = icmp eq i32 %i, 0
  %last = icmp uge i32 %i, %bound
  %border = select i1 %first, i1 true, i1 %last
  %wide = zext nneg i32 %i to i64
  %to = getelementptr i32, ptr %out, i64 %wide
  br i1 %border, label %apart, label %inside

apart:
  store i32 0, ptr %to, align 4
  br label %end

inside:
  %from = getelementptr i32, ptr %in, i64 %wide
  %before = getelementptr i8, ptr %from, i64 -4
  %after = getelementptr i8, ptr %from, i64 4
  %x = load i32, ptr %before, align 4
  %y = load i32, ptr %from, align 4
  %z = load i32, ptr %after, align 4
  %xy = add i32 %x, %y
  %xyz = add i32 %xy, %z
  store i32 %xyz, ptr %to, align 4
  br label %end

end:
  ret void
}
