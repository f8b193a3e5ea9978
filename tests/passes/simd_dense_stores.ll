; Three elements per lane, without gaps: whole vectors. With 256 bits, more elements that are not a power of two are stored one by one.
; run: simd simd-gang cpu=x86-64-v3
; run: simd simd-gang cpu=x86-64-v4
; expect: store <{…} x float>
; expect: store <{…} x float>
; expect: store <{…} x float>
; absent: store float
; absent: scatter
define void @__smelt_entry(ptr %context) {
entry:
  %me = call i32 @__smelt_thread_index()
  %x = call ptr @__smelt_buffer_address(i32 0)
  %y = call ptr @__smelt_buffer_address(i32 1)
  %from = addrspacecast ptr %x to ptr addrspace(5)
  %to = addrspacecast ptr %y to ptr addrspace(5)
  %at = zext i32 %me to i64
  %element = getelementptr float, ptr addrspace(5) %from, i64 %at
  %v = load float, ptr addrspace(5) %element
  %v1 = fadd float %v, 1.0
  %v2 = fmul float %v, 3.0
  %three = getelementptr [3 x float], ptr addrspace(5) %to, i64 %at
  %second = getelementptr i8, ptr addrspace(5) %three, i64 4
  %third = getelementptr i8, ptr addrspace(5) %three, i64 8
  store float %v, ptr addrspace(5) %three
  store float %v1, ptr addrspace(5) %second
  store float %v2, ptr addrspace(5) %third
  ret void
}
declare i32 @__smelt_thread_index()
declare ptr @__smelt_buffer_address(i32)
