; In a kernel of matrix products, a loop that fills a tile is unrolled if every thread runs the same few rounds: four of 128 threads'. So is
; a loop of few products. One whose rounds depend on the thread stays.
; run: ptx ptx-target+ptx-unroll threads=128
; expect: br i1 %again.other
; absent: br i1 %again.fill
; absent: br i1 %again.step
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@tile = internal addrspace(3) global [512 x float] undef

declare float @__smelt_simd_matrix_product(float, float, float, float)
declare i32 @__smelt_thread_index()

define void @__smelt_entry(ptr %context) {
entry:
  %array = load ptr addrspace(1), ptr %context, align 8
  %thread = call i32 @__smelt_thread_index(), !range !0
  br label %fill
fill:
  %q = phi i32 [ %thread, %entry ], [ %q.next, %fill ]
  %from = getelementptr inbounds float, ptr addrspace(1) %array, i32 %q
  %x = load float, ptr addrspace(1) %from, align 4
  %to = getelementptr inbounds float, ptr addrspace(3) @tile, i32 %q
  store float %x, ptr addrspace(3) %to, align 4
  %q.next = add nuw nsw i32 %q, 128
  %again.fill = icmp ult i32 %q, 384
  br i1 %again.fill, label %fill, label %other
other:
  %o = phi i32 [ %thread, %fill ], [ %o.next, %other ]
  %o.from = getelementptr inbounds float, ptr addrspace(1) %array, i32 %o
  %y = load float, ptr addrspace(1) %o.from, align 4
  %o.to = getelementptr inbounds float, ptr addrspace(3) @tile, i32 %o
  store float %y, ptr addrspace(3) %o.to, align 4
  %o.next = add nuw nsw i32 %o, 128
  %again.other = icmp ult i32 %o, 300
  br i1 %again.other, label %other, label %step
step:
  %k = phi i32 [ 0, %other ], [ %k.next, %step ]
  %sum = phi float [ 0.0, %other ], [ %more, %step ]
  %at = getelementptr inbounds float, ptr addrspace(3) @tile, i32 %k
  %l = load float, ptr addrspace(3) %at, align 4
  %more = call float @__smelt_simd_matrix_product(float %l, float %l, float %l, float %sum)
  %k.next = add nuw nsw i32 %k, 8
  %again.step = icmp ult i32 %k, 24
  br i1 %again.step, label %step, label %end
end:
  store float %more, ptr addrspace(1) %array, align 4
  ret void
}

!0 = !{i32 0, i32 128}
