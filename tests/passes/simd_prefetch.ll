; In a loop with a barrier, a round prefetches what the next one loads, before the barrier: neighbouring elements once, at the step of
; the address, which is computed before the loop. Nothing is prefetched where the step differs between threads.
; run: simd simd-prefetch cpu=x86-64-v3
; expect: entry:
; expect: %{row:…} = mul i32 16, %length
; expect: %{index:…} = add i32 %{row:…}, 0
; expect: %{wide:…} = sext i32 %{index:…} to i64
; expect: %{all:…} = mul i64 %{wide:…}, 4
; expect: %{bytes:…} = add i64 0, %{all:…}
; expect: loop:
; expect: load float, ptr addrspace(5) %element
; expect: load float, ptr addrspace(5) %neighbour
; expect: load float, ptr addrspace(5) %apart
; expect: %{next:…} = getelementptr i8, ptr addrspace(5) %element, i64 %{bytes:…}
; expect: call void @llvm.prefetch.p5(ptr addrspace(5) %{next:…}, i32 0, i32 2, i32 1)
; expect: call void @__smelt_threadgroup_barrier
; absent: ptr addrspace(5) %neighbour, i64
; absent: ptr addrspace(5) %apart, i64
define void @__smelt_entry(ptr %context) {
entry:
  %me = call i32 @__smelt_position_in_threadgroup(i32 0)
  %length = call i32 @__smelt_grid_threads(i32 0)
  %x = call ptr @__smelt_buffer_address(i32 0)
  %device = addrspacecast ptr %x to ptr addrspace(5)
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %next, %loop ]
  %row = mul i32 %k, %length
  %at = add i32 %row, %me
  %wide = zext i32 %at to i64
  %element = getelementptr float, ptr addrspace(5) %device, i64 %wide
  %a = load float, ptr addrspace(5) %element
  %neighbour = getelementptr i8, ptr addrspace(5) %element, i64 4
  %b = load float, ptr addrspace(5) %neighbour
  %own = mul i32 %k, %me
  %far = zext i32 %own to i64
  %apart = getelementptr float, ptr addrspace(5) %device, i64 %far
  %c = load float, ptr addrspace(5) %apart
  %ab = fadd float %a, %b
  %abc = fadd float %ab, %c
  %here = zext i32 %me to i64
  %tile = getelementptr float, ptr addrspace(3) @tile, i64 %here
  store float %abc, ptr addrspace(3) %tile
  call void @__smelt_threadgroup_barrier(i32 2, i32 1, ptr null)
  %next = add i32 %k, 16
  %again = icmp ult i32 %next, %length
  br i1 %again, label %loop, label %done
done:
  ret void
}
@tile = internal addrspace(3) global [256 x float] undef
declare i32 @__smelt_position_in_threadgroup(i32)
declare i32 @__smelt_grid_threads(i32)
declare ptr @__smelt_buffer_address(i32)
declare void @__smelt_threadgroup_barrier(i32, i32, ptr)
