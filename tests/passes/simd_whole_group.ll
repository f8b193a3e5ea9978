; A group is one gang if its code is small. A step counts only the vectors that have active lanes: here 16, 8, 4
; and 2 of 32. Barriers then need no code, and the masks are constants.
; run: simd simd-gang cpu=x86-64-v3 threads=256
; expect: define void @__smelt_entry(
; absent: gang_barrier
; absent: <8 x i1> %
; run: simd simd-gang cpu=x86-64-v3 threads=512
; expect: gang_barrier
declare i32 @__smelt_thread_index()
declare void @__smelt_threadgroup_barrier(i32, i32, ptr)
@part = internal addrspace(3) global [256 x float] undef, align 64

define void @__smelt_entry(ptr %context) {
entry:
  %i = call i32 @__smelt_thread_index()
  %w = zext i32 %i to i64
  %p = getelementptr [256 x float], ptr addrspace(3) @part, i64 0, i64 %w
  %f = uitofp i32 %i to float
  store float %f, ptr addrspace(3) %p
  call void @__smelt_threadgroup_barrier(i32 1, i32 1, ptr null)
  %c0 = icmp ult i32 %i, 128
  br i1 %c0, label %step0, label %end0
step0:
  %q0 = getelementptr float, ptr addrspace(3) %p, i64 128
  %a0 = load float, ptr addrspace(3) %p
  %b0 = load float, ptr addrspace(3) %q0
  %s0_0 = fadd float %a0, %b0
  %s0_1 = fadd float %s0_0, %b0
  %s0_2 = fadd float %s0_1, %b0
  %s0_3 = fadd float %s0_2, %b0
  %s0_4 = fadd float %s0_3, %b0
  %s0_5 = fadd float %s0_4, %b0
  %s0_6 = fadd float %s0_5, %b0
  %s0_7 = fadd float %s0_6, %b0
  %s0_8 = fadd float %s0_7, %b0
  %s0_9 = fadd float %s0_8, %b0
  %s0_10 = fadd float %s0_9, %b0
  %s0_11 = fadd float %s0_10, %b0
  %s0_12 = fadd float %s0_11, %b0
  %s0_13 = fadd float %s0_12, %b0
  %s0_14 = fadd float %s0_13, %b0
  %s0_15 = fadd float %s0_14, %b0
  %s0_16 = fadd float %s0_15, %b0
  %s0_17 = fadd float %s0_16, %b0
  %s0_18 = fadd float %s0_17, %b0
  %s0_19 = fadd float %s0_18, %b0
  %s0_20 = fadd float %s0_19, %b0
  %s0_21 = fadd float %s0_20, %b0
  %s0_22 = fadd float %s0_21, %b0
  %s0_23 = fadd float %s0_22, %b0
  store float %s0_23, ptr addrspace(3) %p
  br label %end0
end0:
  call void @__smelt_threadgroup_barrier(i32 1, i32 2, ptr null)
  %c1 = icmp ult i32 %i, 64
  br i1 %c1, label %step1, label %end1
step1:
  %q1 = getelementptr float, ptr addrspace(3) %p, i64 64
  %a1 = load float, ptr addrspace(3) %p
  %b1 = load float, ptr addrspace(3) %q1
  %s1_0 = fadd float %a1, %b1
  %s1_1 = fadd float %s1_0, %b1
  %s1_2 = fadd float %s1_1, %b1
  %s1_3 = fadd float %s1_2, %b1
  %s1_4 = fadd float %s1_3, %b1
  %s1_5 = fadd float %s1_4, %b1
  %s1_6 = fadd float %s1_5, %b1
  %s1_7 = fadd float %s1_6, %b1
  %s1_8 = fadd float %s1_7, %b1
  %s1_9 = fadd float %s1_8, %b1
  %s1_10 = fadd float %s1_9, %b1
  %s1_11 = fadd float %s1_10, %b1
  %s1_12 = fadd float %s1_11, %b1
  %s1_13 = fadd float %s1_12, %b1
  %s1_14 = fadd float %s1_13, %b1
  %s1_15 = fadd float %s1_14, %b1
  %s1_16 = fadd float %s1_15, %b1
  %s1_17 = fadd float %s1_16, %b1
  %s1_18 = fadd float %s1_17, %b1
  %s1_19 = fadd float %s1_18, %b1
  %s1_20 = fadd float %s1_19, %b1
  %s1_21 = fadd float %s1_20, %b1
  %s1_22 = fadd float %s1_21, %b1
  %s1_23 = fadd float %s1_22, %b1
  store float %s1_23, ptr addrspace(3) %p
  br label %end1
end1:
  call void @__smelt_threadgroup_barrier(i32 1, i32 3, ptr null)
  %c2 = icmp ult i32 %i, 32
  br i1 %c2, label %step2, label %end2
step2:
  %q2 = getelementptr float, ptr addrspace(3) %p, i64 32
  %a2 = load float, ptr addrspace(3) %p
  %b2 = load float, ptr addrspace(3) %q2
  %s2_0 = fadd float %a2, %b2
  %s2_1 = fadd float %s2_0, %b2
  %s2_2 = fadd float %s2_1, %b2
  %s2_3 = fadd float %s2_2, %b2
  %s2_4 = fadd float %s2_3, %b2
  %s2_5 = fadd float %s2_4, %b2
  %s2_6 = fadd float %s2_5, %b2
  %s2_7 = fadd float %s2_6, %b2
  %s2_8 = fadd float %s2_7, %b2
  %s2_9 = fadd float %s2_8, %b2
  %s2_10 = fadd float %s2_9, %b2
  %s2_11 = fadd float %s2_10, %b2
  %s2_12 = fadd float %s2_11, %b2
  %s2_13 = fadd float %s2_12, %b2
  %s2_14 = fadd float %s2_13, %b2
  %s2_15 = fadd float %s2_14, %b2
  %s2_16 = fadd float %s2_15, %b2
  %s2_17 = fadd float %s2_16, %b2
  %s2_18 = fadd float %s2_17, %b2
  %s2_19 = fadd float %s2_18, %b2
  %s2_20 = fadd float %s2_19, %b2
  %s2_21 = fadd float %s2_20, %b2
  %s2_22 = fadd float %s2_21, %b2
  %s2_23 = fadd float %s2_22, %b2
  store float %s2_23, ptr addrspace(3) %p
  br label %end2
end2:
  call void @__smelt_threadgroup_barrier(i32 1, i32 4, ptr null)
  %c3 = icmp ult i32 %i, 16
  br i1 %c3, label %step3, label %end3
step3:
  %q3 = getelementptr float, ptr addrspace(3) %p, i64 16
  %a3 = load float, ptr addrspace(3) %p
  %b3 = load float, ptr addrspace(3) %q3
  %s3_0 = fadd float %a3, %b3
  %s3_1 = fadd float %s3_0, %b3
  %s3_2 = fadd float %s3_1, %b3
  %s3_3 = fadd float %s3_2, %b3
  %s3_4 = fadd float %s3_3, %b3
  %s3_5 = fadd float %s3_4, %b3
  %s3_6 = fadd float %s3_5, %b3
  %s3_7 = fadd float %s3_6, %b3
  %s3_8 = fadd float %s3_7, %b3
  %s3_9 = fadd float %s3_8, %b3
  %s3_10 = fadd float %s3_9, %b3
  %s3_11 = fadd float %s3_10, %b3
  %s3_12 = fadd float %s3_11, %b3
  %s3_13 = fadd float %s3_12, %b3
  %s3_14 = fadd float %s3_13, %b3
  %s3_15 = fadd float %s3_14, %b3
  %s3_16 = fadd float %s3_15, %b3
  %s3_17 = fadd float %s3_16, %b3
  %s3_18 = fadd float %s3_17, %b3
  %s3_19 = fadd float %s3_18, %b3
  %s3_20 = fadd float %s3_19, %b3
  %s3_21 = fadd float %s3_20, %b3
  %s3_22 = fadd float %s3_21, %b3
  %s3_23 = fadd float %s3_22, %b3
  store float %s3_23, ptr addrspace(3) %p
  br label %end3
end3:
  call void @__smelt_threadgroup_barrier(i32 1, i32 5, ptr null)
  ret void
}
