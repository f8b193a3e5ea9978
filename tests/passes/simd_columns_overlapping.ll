; A loop that loads and stores stays as it is if the buffers may overlap.
; run: simd simd-columns cpu=x86-64-v3 distinct=0
; expect: loop:
; absent: rows:
define void @__smelt_entry(ptr %context) {
entry:
  %me = call i32 @__smelt_thread_position(i32 0)
  %x = call ptr @__smelt_buffer_address(i32 0)
  %device = addrspacecast ptr %x to ptr addrspace(5)
  %y = call ptr @__smelt_buffer_address(i32 1)
  %out = addrspacecast ptr %y to ptr addrspace(5)
  %length = call i32 @__smelt_grid_threads(i32 0)
  %row = mul i32 %me, %length
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %next, %loop ]
  %at = add i32 %row, %k
  %wide = zext i32 %at to i64
  %place = getelementptr float, ptr addrspace(5) %device, i64 %wide
  %element = load float, ptr addrspace(5) %place
  %more = fadd float %element, 1.0
  %to = getelementptr float, ptr addrspace(5) %out, i64 %wide
  store float %more, ptr addrspace(5) %to
  %next = add i32 %k, 1
  %again = icmp ult i32 %next, %length
  br i1 %again, label %loop, label %done
done:
  ret void
}
declare i32 @__smelt_thread_position(i32)
declare ptr @__smelt_buffer_address(i32)
declare i32 @__smelt_grid_threads(i32)
