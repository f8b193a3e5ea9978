; Constants that are added after an index was extended share a test with the index itself. Those that were added before, where the
; sum may wrap around, share one only with sums that stay in its element: small=1.
; run: scalar bounds tested=1 small=1
; expect: call void @__smelt_inside_5(ptr addrspace(5) %first, i64 0, i64 16,
; expect: call void @__smelt_inside_5(ptr addrspace(5) %wrapped, i64 0, i64 4,
; expect: call void @__smelt_inside_5(ptr addrspace(5) %far, i64 0, i64 4,
; absent: inside_5(ptr addrspace(5) %second,
; absent: inside_5(ptr addrspace(5) %fourth,
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
declare ptr @__smelt_buffer_address(i32)
declare i32 @__smelt_thread_position(i32)
define void @__smelt_entry(ptr %context) {
entry:
  %a = call ptr @__smelt_buffer_address(i32 0)
  %in = addrspacecast ptr %a to ptr addrspace(5)
  %me = call i32 @__smelt_thread_position(i32 0)
  %times = shl i32 %me, 2
  %index = zext i32 %times to i64
  %first = getelementptr float, ptr addrspace(5) %in, i64 %index
  %x = load float, ptr addrspace(5) %first
  %more = add i64 %index, 1
  %second = getelementptr float, ptr addrspace(5) %in, i64 %more
  %y = load float, ptr addrspace(5) %second
  %fourth = getelementptr i8, ptr addrspace(5) %first, i64 12
  store float %x, ptr addrspace(5) %fourth
  %other = call i32 @__smelt_thread_position(i32 1)
  %five = add i32 %other, 5
  %wide = zext i32 %five to i64
  %wrapped = getelementptr float, ptr addrspace(5) %in, i64 %wide
  store float %x, ptr addrspace(5) %wrapped
  %alone = zext i32 %other to i64
  %one = add i64 %alone, 1
  %far = getelementptr float, ptr addrspace(5) %in, i64 %one
  store float %y, ptr addrspace(5) %far
  ret void
}
