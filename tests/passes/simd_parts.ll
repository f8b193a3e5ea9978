; A thread carries six sums around a loop, 24 registers of a gang of 32 lanes: with 256 bits, all rounds run for two chunks before
; they run for the other two, and the counter begins anew. With 512 bits, they fit.
; run: simd simd-gang cpu=x86-64-v3 threads=32
; expect: phi i32 [ 0, %
; expect: fmul <8 x float>
; expect: br i1 %
; expect: phi i32 [ 0, %
; expect: fmul <8 x float>
; expect: br i1 %
; run: simd simd-gang cpu=x86-64-v4 threads=32
; expect: phi i32 [ 0, %
; expect: fmul <16 x float>
; expect: br i1 %
; absent: <8 x float>
declare i32 @__smelt_lane()
declare ptr @__smelt_buffer_address(i32)
@tile = internal addrspace(3) global [256 x float] undef

define void @__smelt_entry(ptr %context) {
entry:
  %out = call ptr @__smelt_buffer_address(i32 0)
  %lane = call i32 @__smelt_lane()
  %wide = zext i32 %lane to i64
  br label %loop

loop:
  %k = phi i32 [ 0, %entry ], [ %next, %loop ]
  %a = phi float [ 0.0, %entry ], [ %a2, %loop ]
  %b = phi float [ 1.0, %entry ], [ %b2, %loop ]
  %c = phi float [ 2.0, %entry ], [ %c2, %loop ]
  %d = phi float [ 3.0, %entry ], [ %d2, %loop ]
  %e = phi float [ 4.0, %entry ], [ %e2, %loop ]
  %f = phi float [ 5.0, %entry ], [ %f2, %loop ]
  %kw = zext i32 %k to i64
  %at = add i64 %kw, %wide
  %from = getelementptr inbounds [256 x float], ptr addrspace(3) @tile, i64 0, i64 %at
  %x = load float, ptr addrspace(3) %from
  %a2 = fmul float %a, %x
  %b2 = fadd float %b, %a2
  %c2 = fadd float %c, %b2
  %d2 = fadd float %d, %c2
  %e2 = fadd float %e, %d2
  %f2 = fadd float %f, %e2
  %next = add nuw i32 %k, 1
  %more = icmp ult i32 %next, 16
  br i1 %more, label %loop, label %end

end:
  %to = getelementptr inbounds float, ptr %out, i64 %wide
  store float %f2, ptr %to
  ret void
}
