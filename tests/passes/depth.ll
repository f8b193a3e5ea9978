; A loop over the depth of products stays a loop, whatever the source asks (c0). Not so where its rounds choose elements of the
; thread's own arrays, as a loop over an array of sums (c1), where a round multiplies few matrices (c2) or meets the other
; threads of the group (c3). On GPUs nothing changes.
; run: simd depth
; run: scalar depth
; expect: br i1 %c0, label %loop0, label %loop1, !llvm.loop !0
; expect: br i1 %c1, label %loop1, label %loop2, !llvm.loop !2
; expect: br i1 %c2, label %loop2, label %loop3, !llvm.loop !2
; expect: br i1 %c3, label %loop3, label %end, !llvm.loop !2
; expect: !0 = distinct !{!0, !1}
; expect: !1 = !{!"llvm.loop.unroll.disable"}
; run: ptx depth
; absent: llvm.loop.unroll.disable
declare float @__smelt_simd_matrix_product(float, float, float, float)
declare void @__smelt_threadgroup_barrier(i32, i32, ptr)
@tile = internal addrspace(3) global [256 x float] undef
define void @__smelt_entry(ptr %context) {
entry:
  %sums = alloca [4 x float]
  br label %loop0
loop0:
  %k0 = phi i64 [ 0, %entry ], [ %n0, %loop0 ]
  %at0 = getelementptr float, ptr addrspace(3) @tile, i64 %k0
  %x0 = load float, ptr addrspace(3) %at0
  %own0 = getelementptr float, ptr %sums, i64 1
  %s0 = load float, ptr %own0
  %p0.0 = call float @__smelt_simd_matrix_product(float %x0, float %x0, float %x0, float %s0)
  %q0.0 = call float @__smelt_simd_matrix_product(float %x0, float %x0, float %x0, float %p0.0)
  %p0.1 = call float @__smelt_simd_matrix_product(float %x0, float %x0, float %x0, float %s0)
  %q0.1 = call float @__smelt_simd_matrix_product(float %x0, float %x0, float %x0, float %p0.1)
  %p0.2 = call float @__smelt_simd_matrix_product(float %x0, float %x0, float %x0, float %s0)
  %q0.2 = call float @__smelt_simd_matrix_product(float %x0, float %x0, float %x0, float %p0.2)
  %p0.3 = call float @__smelt_simd_matrix_product(float %x0, float %x0, float %x0, float %s0)
  %q0.3 = call float @__smelt_simd_matrix_product(float %x0, float %x0, float %x0, float %p0.3)
  store float %q0.3, ptr %own0
  %n0 = add i64 %k0, 1
  %c0 = icmp ult i64 %n0, 4
  br i1 %c0, label %loop0, label %loop1, !llvm.loop !0
loop1:
  %k1 = phi i64 [ 0, %loop0 ], [ %n1, %loop1 ]
  %at1 = getelementptr float, ptr addrspace(3) @tile, i64 %k1
  %x1 = load float, ptr addrspace(3) %at1
  %own1 = getelementptr float, ptr %sums, i64 %k1
  %s1 = load float, ptr %own1
  %p1.0 = call float @__smelt_simd_matrix_product(float %x1, float %x1, float %x1, float %s1)
  %q1.0 = call float @__smelt_simd_matrix_product(float %x1, float %x1, float %x1, float %p1.0)
  %p1.1 = call float @__smelt_simd_matrix_product(float %x1, float %x1, float %x1, float %s1)
  %q1.1 = call float @__smelt_simd_matrix_product(float %x1, float %x1, float %x1, float %p1.1)
  %p1.2 = call float @__smelt_simd_matrix_product(float %x1, float %x1, float %x1, float %s1)
  %q1.2 = call float @__smelt_simd_matrix_product(float %x1, float %x1, float %x1, float %p1.2)
  %p1.3 = call float @__smelt_simd_matrix_product(float %x1, float %x1, float %x1, float %s1)
  %q1.3 = call float @__smelt_simd_matrix_product(float %x1, float %x1, float %x1, float %p1.3)
  store float %q1.3, ptr %own1
  %n1 = add i64 %k1, 1
  %c1 = icmp ult i64 %n1, 4
  br i1 %c1, label %loop1, label %loop2, !llvm.loop !0
loop2:
  %k2 = phi i64 [ 0, %loop1 ], [ %n2, %loop2 ]
  %at2 = getelementptr float, ptr addrspace(3) @tile, i64 %k2
  %x2 = load float, ptr addrspace(3) %at2
  %own2 = getelementptr float, ptr %sums, i64 1
  %s2 = load float, ptr %own2
  %p2.0 = call float @__smelt_simd_matrix_product(float %x2, float %x2, float %x2, float %s2)
  %q2.0 = call float @__smelt_simd_matrix_product(float %x2, float %x2, float %x2, float %p2.0)
  %p2.1 = call float @__smelt_simd_matrix_product(float %x2, float %x2, float %x2, float %s2)
  %q2.1 = call float @__smelt_simd_matrix_product(float %x2, float %x2, float %x2, float %p2.1)
  %p2.2 = call float @__smelt_simd_matrix_product(float %x2, float %x2, float %x2, float %s2)
  %q2.2 = call float @__smelt_simd_matrix_product(float %x2, float %x2, float %x2, float %p2.2)
  store float %q2.2, ptr %own2
  %n2 = add i64 %k2, 1
  %c2 = icmp ult i64 %n2, 4
  br i1 %c2, label %loop2, label %loop3, !llvm.loop !0
loop3:
  %k3 = phi i64 [ 0, %loop2 ], [ %n3, %loop3 ]
  %at3 = getelementptr float, ptr addrspace(3) @tile, i64 %k3
  %x3 = load float, ptr addrspace(3) %at3
  %own3 = getelementptr float, ptr %sums, i64 1
  %s3 = load float, ptr %own3
  call void @__smelt_threadgroup_barrier(i32 2, i32 1, ptr null)
  %p3.0 = call float @__smelt_simd_matrix_product(float %x3, float %x3, float %x3, float %s3)
  %q3.0 = call float @__smelt_simd_matrix_product(float %x3, float %x3, float %x3, float %p3.0)
  %p3.1 = call float @__smelt_simd_matrix_product(float %x3, float %x3, float %x3, float %s3)
  %q3.1 = call float @__smelt_simd_matrix_product(float %x3, float %x3, float %x3, float %p3.1)
  %p3.2 = call float @__smelt_simd_matrix_product(float %x3, float %x3, float %x3, float %s3)
  %q3.2 = call float @__smelt_simd_matrix_product(float %x3, float %x3, float %x3, float %p3.2)
  %p3.3 = call float @__smelt_simd_matrix_product(float %x3, float %x3, float %x3, float %s3)
  %q3.3 = call float @__smelt_simd_matrix_product(float %x3, float %x3, float %x3, float %p3.3)
  store float %q3.3, ptr %own3
  %n3 = add i64 %k3, 1
  %c3 = icmp ult i64 %n3, 4
  br i1 %c3, label %loop3, label %end, !llvm.loop !0
end:
  ret void
}
!0 = distinct !{!0, !1}
!1 = !{!"llvm.loop.unroll.full"}
