; A loop over a private array is unrolled whole, so that the array lies in registers.
; run: ptx ptx-target+ptx-unroll
; absent: alloca
; absent: br
; expect: load float, ptr %
; expect: fadd float
define void @__smelt_entry(ptr %context) {
entry:
  %array = alloca [24 x float]
  br label %fill
fill:
  %i = phi i32 [ 0, %entry ], [ %i.next, %fill ]
  %from = getelementptr inbounds float, ptr %context, i32 %i
  %x = load float, ptr %from
  %into = getelementptr inbounds [24 x float], ptr %array, i32 0, i32 %i
  store float %x, ptr %into
  %i.next = add nuw nsw i32 %i, 1
  %i.again = icmp ult i32 %i.next, 24
  br i1 %i.again, label %fill, label %add
add:
  %k = phi i32 [ 0, %fill ], [ %k.next, %add ]
  %sum = phi float [ 0.0, %fill ], [ %sum.next, %add ]
  %own = getelementptr inbounds [24 x float], ptr %array, i32 0, i32 %k
  %y = load float, ptr %own
  %sum.next = fadd float %sum, %y
  %k.next = add nuw nsw i32 %k, 1
  %k.again = icmp ult i32 %k.next, 24
  br i1 %k.again, label %add, label %end
end:
  store float %sum.next, ptr %context
  ret void
}
