; A loop of two rounds, whose counter is an i1, over a private array is unrolled whole, too.
; run: ptx ptx-target+ptx-unroll
; absent: alloca
; absent: br
; expect: load float, ptr %
; expect: fadd float
define void @__smelt_entry(ptr %context) {
entry:
  %array = alloca [2 x float]
  br label %fill
fill:
  %first = phi i1 [ true, %entry ], [ false, %fill ]
  %i = phi i32 [ 0, %entry ], [ 1, %fill ]
  %from = getelementptr inbounds float, ptr %context, i32 %i
  %x = load float, ptr %from
  %into = getelementptr inbounds [2 x float], ptr %array, i32 0, i32 %i
  store float %x, ptr %into
  br i1 %first, label %fill, label %add
add:
  %a = load float, ptr %array
  %second = getelementptr inbounds [2 x float], ptr %array, i32 0, i32 1
  %b = load float, ptr %second
  %sum = fadd float %a, %b
  store float %sum, ptr %context
  ret void
}
