; Code for another target is removed before other passes see it.
; run: scalar specialise
; run: simd specialise
; expect: store i32 1, ptr %context
; absent: barrier
; run: ptx ptx-target+specialise
; expect: call void @__smelt_threadgroup_barrier
; absent: store i32 1
declare i32 @__smelt_gpu_target()
declare void @__smelt_threadgroup_barrier(i32, i32, ptr)

define void @__smelt_entry(ptr %context) {
  %target = call i32 @__smelt_gpu_target()
  %new = icmp uge i32 %target, 800
  br i1 %new, label %gpu, label %cpu
gpu:
  call void @__smelt_threadgroup_barrier(i32 0, i32 0, ptr null)
  ret void
cpu:
  store i32 1, ptr %context
  ret void
}
