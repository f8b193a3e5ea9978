; A loop that ends after sixteen rounds does not poll whether the launch has been stopped.
; run: simd simd-gang cpu=x86-64-v4 polled=1 threads=32
; run: simd simd-gang cpu=x86-64-v3 polled=1 threads=32
; run: simd simd-gang cpu=x86-64-v3 polled=1
; expect: call {…} @llvm.fma.v
; absent: load volatile
declare i32 @__smelt_lane()
declare ptr @__smelt_buffer_address(i32)
declare float @llvm.fma.f32(float, float, float)

define void @__smelt_entry(ptr %context) {
entry:
  %in = call ptr @__smelt_buffer_address(i32 0)
  %from = addrspacecast ptr %in to ptr addrspace(5)
  %out = call ptr @__smelt_buffer_address(i32 1)
  %to = addrspacecast ptr %out to ptr addrspace(5)
  %lane = call i32 @__smelt_lane()
  %wide = zext i32 %lane to i64
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %sum = phi float [ 0.0, %entry ], [ %more, %loop ]
  %row = getelementptr inbounds [32 x float], ptr addrspace(5) %from, i64 %i, i64 %wide
  %x = load float, ptr addrspace(5) %row
  %more = call float @llvm.fma.f32(float %x, float %x, float %sum)
  %next = add nuw nsw i64 %i, 1
  %again = icmp ult i64 %next, 16
  br i1 %again, label %loop, label %end
end:
  %at = getelementptr inbounds float, ptr addrspace(5) %to, i64 %wide
  store float %more, ptr addrspace(5) %at
  ret void
}
