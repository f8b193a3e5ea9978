; A load from a small table of the kernel's own permutes vectors of the table; one whose index may be larger is gathered.
; run: simd simd-gang threads=32
; expect: @llvm.x86.avx
; expect: @llvm.masked.gather
@table = internal addrspace(3) global [16 x float] zeroinitializer
declare i32 @__smelt_thread_index()
declare ptr @__smelt_buffer_address(i32)

define void @__smelt_entry(ptr %context) {
  %a = call ptr @__smelt_buffer_address(i32 0)
  %t = call i32 @__smelt_thread_index()
  %wide = zext i32 %t to i64
  %from = getelementptr inbounds i32, ptr %a, i64 %wide
  %x = load i32, ptr %from
  %small = and i32 %x, 15
  %index = zext i32 %small to i64
  %place = getelementptr inbounds [16 x float], ptr addrspace(3) @table, i64 0, i64 %index
  %y = load float, ptr addrspace(3) %place
  store float %y, ptr %from
  %more = and i32 %x, 63
  %far = zext i32 %more to i64
  %other = getelementptr inbounds float, ptr %a, i64 %far
  %z = load float, ptr %other
  store float %z, ptr %from
  ret void
}
