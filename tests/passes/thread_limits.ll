; What a kernel says of its threadgroups goes into the image.
; run: all thread-limits
; expect: threads: at most 128, required 8 4 1
; absent: call void @__smelt_required_threads
declare void @__smelt_max_threads(i32)
declare void @__smelt_required_threads(i32, i32, i32)

define void @__smelt_entry(ptr %context) {
  call void @__smelt_max_threads(i32 128)
  call void @__smelt_required_threads(i32 8, i32 4, i32 1)
  ret void
}
