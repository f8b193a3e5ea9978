; Inside another loop, one of four steps of a product on tensor cores is unrolled whole. Its condition compares
; the counter before it grows.
; run: ptx ptx-target+ptx-unroll
; absent: icmp ult i32 %k,
; expect: call float @__smelt_simd_matrix_product
; expect: call float @__smelt_simd_matrix_product
; expect: call float @__smelt_simd_matrix_product
; expect: call float @__smelt_simd_matrix_product
; expect: icmp ult i32 %tile
declare float @__smelt_simd_matrix_product(float, float, float, float)
define void @__smelt_entry(ptr %context) {
entry:
  br label %tiles
tiles:
  %tile = phi i32 [ 0, %entry ], [ %tile.next, %tiles.end ]
  %sum.tile = phi float [ 0.0, %entry ], [ %sum.next, %tiles.end ]
  br label %steps
steps:
  %k = phi i32 [ 0, %tiles ], [ %k.next, %steps ]
  %sum = phi float [ %sum.tile, %tiles ], [ %sum.next, %steps ]
  %at = add i32 %tile, %k
  %from = getelementptr inbounds half, ptr %context, i32 %at
  %half = load half, ptr %from
  %x = fpext half %half to float
  %sum.next = call float @__smelt_simd_matrix_product(float %x, float %x, float %x, float %sum)
  %k.next = add nuw nsw i32 %k, 8
  %k.again = icmp ult i32 %k, 24
  br i1 %k.again, label %steps, label %tiles.end
tiles.end:
  %tile.next = add nuw nsw i32 %tile, 32
  %tile.again = icmp ult i32 %tile.next, 4096
  br i1 %tile.again, label %tiles, label %end
end:
  store float %sum.next, ptr %context
  ret void
}
