; A loop carries a sum as an integer, and the code behind the loop converts the sum, too. The sum stays in the tensor cores' layout: what
; the loop carries goes to the product without a shuffle.
; run: ptx ptx-target+ptx-matrix threads=32
; expect: {CARRIED:…} = phi i32 [ 0, %entry ]
; expect: {SUM:…} = bitcast i32 {CARRIED:…} to float
; expect: mma.sync.aligned.m16n8k8{…}.f16{…}float {SUM:…}
declare float @__smelt_simd_matrix_product(float, float, float, float)
declare i32 @__smelt_lane()

define void @__smelt_entry(ptr %context) {
entry:
  %left.even = load half, ptr %context
  %left.odd = load half, ptr %context
  %right.even = load half, ptr %context
  %right.odd = load half, ptr %context
  %a = fpext half %left.even to float
  %b = fpext half %left.odd to float
  %c = fpext half %right.even to float
  %d = fpext half %right.odd to float
  br label %round
round:
  %bits.even = phi i32 [ 0, %entry ], [ %again.even, %round ]
  %bits.odd = phi i32 [ 0, %entry ], [ %again.odd, %round ]
  %i = phi i32 [ 0, %entry ], [ %next, %round ]
  %sum.even = bitcast i32 %bits.even to float
  %sum.odd = bitcast i32 %bits.odd to float
  %even = call float @__smelt_simd_matrix_product(float %a, float %b, float %c, float %sum.even)
  %odd = call float @__smelt_simd_matrix_product(float %a, float %b, float %d, float %sum.odd)
  %again.even = bitcast float %even to i32
  %again.odd = bitcast float %odd to i32
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, 9
  br i1 %more, label %round, label %end
end:
  %h.even = fptrunc float %even to half
  %h.odd = fptrunc float %odd to half
  store half %h.even, ptr %context
  store half %h.odd, ptr %context
  ret void
}
