; A thread adds to 2 × 4 sums, whose factors are in threadgroup memory: 32 threads side by side have vectors of the sums of two threads
; (256 bits) or four (512 bits). With 256 bits, the 32 vectors are in registers in four parts, each with a loop, and are carried around
; the outer loop as vectors. The four sums of a thread's row are stored as one vector.
; run: simd simd-gang cpu=x86-64-v3 threads=32
; expect: phi <8 x float> [ zeroinitializer,
; expect: phi <8 x float>
; expect: load <8 x float>, ptr addrspace(3)
; expect: call <8 x float> @llvm.fma.v8f32
; expect: label %part
; expect: phi i64 [ 0, %part
; expect: load <8 x float>, ptr addrspace(3)
; expect: call <8 x float> @llvm.fma.v8f32
; expect: store <4 x float>
; absent: store float
; absent: call float @llvm.fma
; absent: phi float
; run: simd simd-gang cpu=x86-64-v4 threads=32
; expect: phi <16 x float> [ zeroinitializer,
; expect: load <16 x float>, ptr addrspace(3)
; expect: call <16 x float> @llvm.fma.v16f32
; expect: store <4 x float>
; absent: store float
; absent: call float @llvm.fma
; absent: phi float
declare i32 @__smelt_lane()
declare ptr @__smelt_buffer_address(i32)
declare void @__smelt_threadgroup_barrier(i32, i32, ptr)
declare float @llvm.fma.f32(float, float, float)
@left = internal addrspace(3) global [32 x float] undef
@right = internal addrspace(3) global [16 x [128 x float]] undef
@file = private addrspace(1) constant [2 x i8] c"f\00"

define void @__smelt_entry(ptr %context) {
entry:
  %out = call ptr @__smelt_buffer_address(i32 0)
  %lane = call i32 @__smelt_lane()
  %wide = zext i32 %lane to i64
  %own = shl nuw nsw i64 %wide, 2
  br label %outer

outer:
  %round = phi i32 [ 0, %entry ], [ %round2, %after ]
  %o00 = phi float [ 0.0, %entry ], [ %t00, %after ]
  %o01 = phi float [ 0.0, %entry ], [ %t01, %after ]
  %o02 = phi float [ 0.0, %entry ], [ %t02, %after ]
  %o03 = phi float [ 0.0, %entry ], [ %t03, %after ]
  %o10 = phi float [ 0.0, %entry ], [ %t10, %after ]
  %o11 = phi float [ 0.0, %entry ], [ %t11, %after ]
  %o12 = phi float [ 0.0, %entry ], [ %t12, %after ]
  %o13 = phi float [ 0.0, %entry ], [ %t13, %after ]
  call void @__smelt_threadgroup_barrier(i32 2, i32 1, ptr addrspacecast (ptr addrspace(1) @file to ptr))
  br label %loop

loop:
  %k = phi i64 [ 0, %outer ], [ %next, %loop ]
  %s00 = phi float [ %o00, %outer ], [ %t00, %loop ]
  %s01 = phi float [ %o01, %outer ], [ %t01, %loop ]
  %s02 = phi float [ %o02, %outer ], [ %t02, %loop ]
  %s03 = phi float [ %o03, %outer ], [ %t03, %loop ]
  %s10 = phi float [ %o10, %outer ], [ %t10, %loop ]
  %s11 = phi float [ %o11, %outer ], [ %t11, %loop ]
  %s12 = phi float [ %o12, %outer ], [ %t12, %loop ]
  %s13 = phi float [ %o13, %outer ], [ %t13, %loop ]
  %k2 = shl nuw nsw i64 %k, 1
  %ka0 = add nuw nsw i64 %k2, 0
  %a0 = getelementptr inbounds [32 x float], ptr addrspace(3) @left, i64 0, i64 %ka0
  %x0 = load float, ptr addrspace(3) %a0
  %ka1 = add nuw nsw i64 %k2, 1
  %a1 = getelementptr inbounds [32 x float], ptr addrspace(3) @left, i64 0, i64 %ka1
  %x1 = load float, ptr addrspace(3) %a1
  %kb0 = add nuw nsw i64 %own, 0
  %b0 = getelementptr inbounds [16 x [128 x float]], ptr addrspace(3) @right, i64 0, i64 %k, i64 %kb0
  %y0 = load float, ptr addrspace(3) %b0
  %kb1 = add nuw nsw i64 %own, 1
  %b1 = getelementptr inbounds [16 x [128 x float]], ptr addrspace(3) @right, i64 0, i64 %k, i64 %kb1
  %y1 = load float, ptr addrspace(3) %b1
  %kb2 = add nuw nsw i64 %own, 2
  %b2 = getelementptr inbounds [16 x [128 x float]], ptr addrspace(3) @right, i64 0, i64 %k, i64 %kb2
  %y2 = load float, ptr addrspace(3) %b2
  %kb3 = add nuw nsw i64 %own, 3
  %b3 = getelementptr inbounds [16 x [128 x float]], ptr addrspace(3) @right, i64 0, i64 %k, i64 %kb3
  %y3 = load float, ptr addrspace(3) %b3
  %t00 = call float @llvm.fma.f32(float %x0, float %y0, float %s00)
  %t01 = call float @llvm.fma.f32(float %x0, float %y1, float %s01)
  %t02 = call float @llvm.fma.f32(float %x0, float %y2, float %s02)
  %t03 = call float @llvm.fma.f32(float %x0, float %y3, float %s03)
  %t10 = call float @llvm.fma.f32(float %x1, float %y0, float %s10)
  %t11 = call float @llvm.fma.f32(float %x1, float %y1, float %s11)
  %t12 = call float @llvm.fma.f32(float %x1, float %y2, float %s12)
  %t13 = call float @llvm.fma.f32(float %x1, float %y3, float %s13)
  %next = add nuw nsw i64 %k, 1
  %more = icmp ult i64 %next, 16
  br i1 %more, label %loop, label %after

after:
  %round2 = add nuw i32 %round, 1
  %again = icmp ult i32 %round2, 5
  br i1 %again, label %outer, label %end

end:
  %base = shl nuw nsw i64 %wide, 3
  %c00 = add nuw nsw i64 %base, 0
  %p00 = getelementptr inbounds float, ptr %out, i64 %c00
  store float %t00, ptr %p00
  %c01 = add nuw nsw i64 %base, 1
  %p01 = getelementptr inbounds float, ptr %out, i64 %c01
  store float %t01, ptr %p01
  %c02 = add nuw nsw i64 %base, 2
  %p02 = getelementptr inbounds float, ptr %out, i64 %c02
  store float %t02, ptr %p02
  %c03 = add nuw nsw i64 %base, 3
  %p03 = getelementptr inbounds float, ptr %out, i64 %c03
  store float %t03, ptr %p03
  %c10 = add nuw nsw i64 %base, 4
  %p10 = getelementptr inbounds float, ptr %out, i64 %c10
  store float %t10, ptr %p10
  %c11 = add nuw nsw i64 %base, 5
  %p11 = getelementptr inbounds float, ptr %out, i64 %c11
  store float %t11, ptr %p11
  %c12 = add nuw nsw i64 %base, 6
  %p12 = getelementptr inbounds float, ptr %out, i64 %c12
  store float %t12, ptr %p12
  %c13 = add nuw nsw i64 %base, 7
  %p13 = getelementptr inbounds float, ptr %out, i64 %c13
  store float %t13, ptr %p13
  ret void
}
