; A gang of 32 threads prefetches each cache line of 16 floats once. What is loaded in a loop without a barrier is left to the
; hardware's prefetcher, unless it is a row's (simd_prefetch_rows.ll).
; run: simd simd-prefetch+simd-gang cpu=x86-64-v3
; expect: define void @__smelt_entry(ptr {…}) {
; expect: %{now:…} = getelementptr float, ptr addrspace(5)
; expect: %{first:…} = getelementptr i8, ptr addrspace(5) %{now:…}, i64 16384
; expect: load <8 x float>, ptr addrspace(5)
; expect: call void @llvm.prefetch.p5(ptr addrspace(5) %{first:…}, i32 0, i32 2, i32 1)
; expect: load <8 x float>, ptr addrspace(5)
; expect: load <8 x float>, ptr addrspace(5)
; expect: %{second:…} = getelementptr i8, ptr addrspace(5) %{first:…}, i64 64
; expect: call void @llvm.prefetch.p5(ptr addrspace(5) %{second:…}, i32 0, i32 2, i32 1)
; expect: load <8 x float>, ptr addrspace(5)
; expect: @smelt_runtime_gang_barrier
; expect: load <8 x float>, ptr addrspace(5)
; absent: ptr addrspace(5) %{first:…}, i64 32
; absent: ptr addrspace(5) %{first:…}, i64 96
define void @__smelt_entry(ptr %context) {
entry:
  %lane = call i32 @__smelt_lane()
  %length = call i32 @__smelt_grid_threads(i32 0)
  %x = call ptr @__smelt_buffer_address(i32 0)
  %device = addrspacecast ptr %x to ptr addrspace(5)
  %wide = zext i32 %lane to i64
  %own = getelementptr float, ptr addrspace(5) %device, i64 %wide
  %tile = getelementptr float, ptr addrspace(3) @tile, i64 %wide
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %next, %loop ]
  %row = zext i32 %k to i64
  %element = getelementptr float, ptr addrspace(5) %own, i64 %row
  %a = load float, ptr addrspace(5) %element
  store float %a, ptr addrspace(3) %tile
  call void @__smelt_threadgroup_barrier(i32 2, i32 1, ptr null)
  %next = add i32 %k, 4096
  %again = icmp ult i32 %next, %length
  br i1 %again, label %loop, label %plain
plain:
  %j = phi i32 [ 0, %loop ], [ %after, %plain ]
  %column = zext i32 %j to i64
  %other = getelementptr float, ptr addrspace(5) %own, i64 %column
  %b = load float, ptr addrspace(5) %other
  store float %b, ptr addrspace(3) %tile
  %after = add i32 %j, 4096
  %more = icmp ult i32 %after, %length
  br i1 %more, label %plain, label %done
done:
  ret void
}
@tile = internal addrspace(3) global [256 x float] undef
declare i32 @__smelt_lane()
declare i32 @__smelt_grid_threads(i32)
declare ptr @__smelt_buffer_address(i32)
declare void @__smelt_threadgroup_barrier(i32, i32, ptr)
