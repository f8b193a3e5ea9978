; A test of an access becomes a comparison and one piece of assembly, which describes the access and ends the thread.
; run: ptx ptx-target+ptx-inside tested=1
; expect: %{misses:…} = icmp uge i64 %{…}, %{…}
; expect: %{word:…} = zext i1 %{misses:…} to i32
; expect: call void asm sideeffect "{…}@p exit; }"{…}(i32 %{word:…},
; expect: store float
; absent: call void @__smelt_inside_0
; absent: call i64 @__smelt_buffer_extent
declare i64 @__smelt_buffer_start(i32)
declare i64 @__smelt_buffer_extent(i32)
declare void @__smelt_inside_0(ptr, i64, i64, i64, i64, i1, ptr)
define void @__smelt_entry(ptr %context) {
  %start = load i64, ptr %context
  %extent = load i64, ptr %context
  %place = load ptr, ptr %context
  call void @__smelt_inside_0(ptr %place, i64 0, i64 4, i64 %start, i64 %extent, i1 true, ptr null)
  store float 1.0, ptr %place
  ret void
}
