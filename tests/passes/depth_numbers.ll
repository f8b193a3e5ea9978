; A loop that adds products of elements of two tiles stays a loop: threads side by side share one factor, a[row][k], and have
; neighbours of the other one, b[k][column] (c0). Not so where both follow one another from round to round (c1), where the row
; is that of the thread's own column (c2), with fewer rounds (c3), or where a round writes to a tile (c4). The row may be a
; part of the number of the thread (c5).
; run: simd depth threads=256
; run: scalar depth threads=256
; expect: br i1 %c0, label %loop0, label %loop1, !llvm.loop !{KEEP:…}
; expect: br i1 %c1, label %loop1, label %loop2, !llvm.loop !{LEAVE:…}
; expect: br i1 %c2, label %loop2, label %loop3, !llvm.loop !{LEAVE:…}
; expect: br i1 %c3, label %loop3, label %loop4, !llvm.loop !{LEAVE:…}
; expect: br i1 %c4, label %loop4, label %loop5, !llvm.loop !{LEAVE:…}
; expect: br i1 %c5, label %loop5, label %end, !llvm.loop !{ALSO:…}
; expect: !{KEEP:…} = distinct !{!{KEEP:…}, !{NOTE:…}}
; expect: !{NOTE:…} = !{!"llvm.loop.unroll.disable"}
; expect: !{ALSO:…} = distinct !{!{ALSO:…}, !{NOTE:…}}
; Rows of fewer threads than a vector has lanes, and GPUs: nothing changes.
; run: simd depth threads=8
; run: ptx depth threads=256
; absent: llvm.loop.unroll.disable
declare float @llvm.fmuladd.f32(float, float, float)
declare i32 @__smelt_position_in_threadgroup(i32)
declare i32 @__smelt_thread_index()
@a = internal addrspace(3) global [256 x float] undef
@b = internal addrspace(3) global [16 x [16 x half]] undef
define void @__smelt_entry(ptr %context) {
entry:
  %x = call i32 @__smelt_position_in_threadgroup(i32 0)
  %y = call i32 @__smelt_position_in_threadgroup(i32 1)
  %t = call i32 @__smelt_thread_index()
  %start = shl i32 %y, 4
  %own = shl i32 %x, 4
  %first = and i32 %t, 240
  br label %loop0
loop0:
  %k0 = phi i32 [ 0, %entry ], [ %n0, %loop0 ]
  %s0 = phi float [ 0.0, %entry ], [ %r0, %loop0 ]
  %i0 = add i32 %start, %k0
  %p0 = getelementptr float, ptr addrspace(3) @a, i32 %i0
  %a0 = load float, ptr addrspace(3) %p0
  %q0 = getelementptr [16 x half], ptr addrspace(3) @b, i32 %k0, i32 %x
  %h0 = load half, ptr addrspace(3) %q0
  %b0 = fpext half %h0 to float
  %r0 = call float @llvm.fmuladd.f32(float %a0, float %b0, float %s0)
  %n0 = add i32 %k0, 1
  %c0 = icmp ult i32 %n0, 16
  br i1 %c0, label %loop0, label %loop1, !llvm.loop !0
loop1:
  %k1 = phi i32 [ 0, %loop0 ], [ %n1, %loop1 ]
  %s1 = phi float [ 0.0, %loop0 ], [ %r1, %loop1 ]
  %i1 = add i32 %start, %k1
  %p1 = getelementptr float, ptr addrspace(3) @a, i32 %i1
  %a1 = load float, ptr addrspace(3) %p1
  %q1 = getelementptr [16 x half], ptr addrspace(3) @b, i32 %x, i32 %k1
  %h1 = load half, ptr addrspace(3) %q1
  %b1 = fpext half %h1 to float
  %r1 = call float @llvm.fmuladd.f32(float %a1, float %b1, float %s1)
  %n1 = add i32 %k1, 1
  %c1 = icmp ult i32 %n1, 16
  br i1 %c1, label %loop1, label %loop2, !llvm.loop !0
loop2:
  %k2 = phi i32 [ 0, %loop1 ], [ %n2, %loop2 ]
  %s2 = phi float [ 0.0, %loop1 ], [ %r2, %loop2 ]
  %i2 = add i32 %own, %k2
  %p2 = getelementptr float, ptr addrspace(3) @a, i32 %i2
  %a2 = load float, ptr addrspace(3) %p2
  %q2 = getelementptr [16 x half], ptr addrspace(3) @b, i32 %k2, i32 %y
  %h2 = load half, ptr addrspace(3) %q2
  %b2 = fpext half %h2 to float
  %r2 = call float @llvm.fmuladd.f32(float %a2, float %b2, float %s2)
  %n2 = add i32 %k2, 1
  %c2 = icmp ult i32 %n2, 16
  br i1 %c2, label %loop2, label %loop3, !llvm.loop !0
loop3:
  %k3 = phi i32 [ 0, %loop2 ], [ %n3, %loop3 ]
  %s3 = phi float [ 0.0, %loop2 ], [ %r3, %loop3 ]
  %i3 = add i32 %start, %k3
  %p3 = getelementptr float, ptr addrspace(3) @a, i32 %i3
  %a3 = load float, ptr addrspace(3) %p3
  %q3 = getelementptr [16 x half], ptr addrspace(3) @b, i32 %k3, i32 %x
  %h3 = load half, ptr addrspace(3) %q3
  %b3 = fpext half %h3 to float
  %r3 = call float @llvm.fmuladd.f32(float %a3, float %b3, float %s3)
  %n3 = add i32 %k3, 1
  %c3 = icmp ult i32 %n3, 4
  br i1 %c3, label %loop3, label %loop4, !llvm.loop !0
loop4:
  %k4 = phi i32 [ 0, %loop3 ], [ %n4, %loop4 ]
  %s4 = phi float [ 0.0, %loop3 ], [ %r4, %loop4 ]
  %i4 = add i32 %start, %k4
  %p4 = getelementptr float, ptr addrspace(3) @a, i32 %i4
  %a4 = load float, ptr addrspace(3) %p4
  %q4 = getelementptr [16 x half], ptr addrspace(3) @b, i32 %k4, i32 %x
  %h4 = load half, ptr addrspace(3) %q4
  %b4 = fpext half %h4 to float
  %r4 = call float @llvm.fmuladd.f32(float %a4, float %b4, float %s4)
  store float %r4, ptr addrspace(3) @a
  %n4 = add i32 %k4, 1
  %c4 = icmp ult i32 %n4, 16
  br i1 %c4, label %loop4, label %loop5, !llvm.loop !0
loop5:
  %k5 = phi i32 [ 0, %loop4 ], [ %n5, %loop5 ]
  %s5 = phi float [ 0.0, %loop4 ], [ %r5, %loop5 ]
  %i5 = add i32 %first, %k5
  %p5 = getelementptr float, ptr addrspace(3) @a, i32 %i5
  %a5 = load float, ptr addrspace(3) %p5
  %q5 = getelementptr [16 x half], ptr addrspace(3) @b, i32 %k5, i32 %x
  %h5 = load half, ptr addrspace(3) %q5
  %b5 = fpext half %h5 to float
  %r5 = call float @llvm.fmuladd.f32(float %a5, float %b5, float %s5)
  %n5 = add i32 %k5, 1
  %c5 = icmp ult i32 %n5, 16
  br i1 %c5, label %loop5, label %end, !llvm.loop !0
end:
  %all = fadd float %r0, %r1
  store float %all, ptr addrspace(3) @a
  ret void
}
!0 = distinct !{!0, !1}
!1 = !{!"llvm.loop.unroll.full"}
