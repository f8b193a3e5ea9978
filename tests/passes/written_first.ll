; A threadgroup variable that all threads of a group of known size write before any reads it gets a section.
; run: simd written-first threads=32
; expect: @whole = internal addrspace(3) global [32 x i32] undef, section "written first"
; expect: @half = internal addrspace(3) global [32 x i32] undef
; absent: @half = {…}section
; run: simd written-first
; absent: section
@whole = internal addrspace(3) global [32 x i32] undef
@half = internal addrspace(3) global [32 x i32] undef
declare void @__smelt_threadgroup_barrier(i32, i32, ptr)
declare i32 @__smelt_thread_index()

define void @__smelt_entry(ptr %context) {
  %thread = call i32 @__smelt_thread_index()
  %i = zext i32 %thread to i64
  %mine = getelementptr [32 x i32], ptr addrspace(3) @whole, i64 0, i64 %i
  store i32 %thread, ptr addrspace(3) %mine
  %low = lshr i64 %i, 1
  %shared = getelementptr [32 x i32], ptr addrspace(3) @half, i64 0, i64 %low
  store i32 7, ptr addrspace(3) %shared
  call void @__smelt_threadgroup_barrier(i32 2, i32 1, ptr null)
  %other = xor i64 %i, 1
  %theirs = getelementptr [32 x i32], ptr addrspace(3) @whole, i64 0, i64 %other
  %x = load i32, ptr addrspace(3) %theirs
  %late = getelementptr [32 x i32], ptr addrspace(3) @half, i64 0, i64 %i
  store i32 %x, ptr addrspace(3) %late
  store i32 %x, ptr %context
  ret void
}
