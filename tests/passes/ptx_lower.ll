; Positions are computed from special registers, barriers are the block's, threadgroup memory is one block,
; loops look at the stop flag where there is a time-out, and atomics stronger than relaxed get fences.
; run: ptx ptx-target+ptx-retarget+ptx-lower polled=1 threads=64
; expect: call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
; expect: barrier.sync 0;
; expect: br i1
; absent: @__smelt_lane()
; absent: call void @__smelt_threadgroup_barrier
; absent: @tile
@tile = internal addrspace(3) global [64 x i32] undef
declare void @__smelt_threadgroup_barrier(i32, i32, ptr)
declare i32 @__smelt_thread_index()

define void @__smelt_entry(ptr %context) {
entry:
  %i = call i32 @__smelt_thread_index()
  %mine = getelementptr [64 x i32], ptr addrspace(3) @tile, i32 0, i32 %i
  store i32 %i, ptr addrspace(3) %mine
  br label %round
round:
  call void @__smelt_threadgroup_barrier(i32 2, i32 1, ptr null)
  %x = load volatile i32, ptr addrspace(3) %mine
  %again = icmp ne i32 %x, 0
  br i1 %again, label %round, label %end
end:
  ret void
}
