; A barrier comes before a store of one simdgroup to what others load, where all threads pass that reach a barrier before.
; run: scalar overwritten
; run: simd overwritten threads=256
; expect: br i1 %first, label %store, label %stored
; expect: %sum = load float, ptr addrspace(3) %theirs
; expect: call void @__smelt_threadgroup_barrier(i32 2, i32 1, ptr null)
; expect: br i1 %first, label %again, label %done
@shared = internal addrspace(3) global [32 x float] undef
declare void @__smelt_threadgroup_barrier(i32, i32, ptr)
declare i32 @__smelt_lane()
declare i32 @__smelt_simdgroup()

define void @__smelt_entry(ptr %context) {
  %lane = call i32 @__smelt_lane()
  %simdgroup = call i32 @__smelt_simdgroup()
  %first = icmp eq i32 %lane, 0
  %l = zext i32 %lane to i64
  %s = zext i32 %simdgroup to i64
  %mine = getelementptr [32 x float], ptr addrspace(3) @shared, i64 0, i64 %s
  %theirs = getelementptr [32 x float], ptr addrspace(3) @shared, i64 0, i64 %l
  br i1 %first, label %store, label %stored
store:
  store float 1.0, ptr addrspace(3) %mine
  br label %stored
stored:
  call void @__smelt_threadgroup_barrier(i32 2, i32 1, ptr null)
  %sum = load float, ptr addrspace(3) %theirs
  br i1 %first, label %again, label %done
again:
  store float %sum, ptr addrspace(3) %mine
  br label %done
done:
  ret void
}
