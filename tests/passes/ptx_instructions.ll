; Instructions that the prelude calls by name.
; run: ptx ptx-target+ptx-instructions
; expect: call void asm sideeffect "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}"(i32 %number, i32 2)
; expect: call void asm sideeffect "cp.async.cg.shared.global [$0], [$1], 16, $2;", "r,l,r,~{memory}"(i32 %number, i64 6, i32 16)
; expect: call void asm sideeffect "cp.async.wait_all;", "~{memory}"()
; expect: call void asm sideeffect "wgmma.wait_group.sync.aligned $0;", "n,~{memory}"(i32 1)
; expect: load float
; expect: asm sideeffect "{ .reg .pred p; setp.ne.b32 p, $6, 0;\0Awgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {$0, $1, $2, $3}, $4, $5, p, 1, 1, 0, 1; }", "=f,=f,=f,=f,l,l,r,0,1,2,3,~{memory}"
; expect: store float
; expect: wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {$0, $1, $2, $3}, {$4, $5, $6, $7}, $8, p, 1, 1, 1; }", "=f,=f,=f,=f,r,r,r,r,l,r,0,1,2,3,~{memory}"
; expect: wgmma.wait_group.sync.aligned 0
; expect: call i32 asm sideeffect "shfl.sync.bfly.b32 $0, $1, $2, 31, 0xffffffff;", "=r,r,r"(i32 %number, i32 1)
; expect: call i32 asm "mapa.shared::cluster.u32 $0, $1, $2;", "=r,r,r"(i32 %number, i32 1)
; expect: call float asm "max.NaN.f32 $0, $1, $2;", "=f,f,f"(float %real, float 1.000000e+00)
; expect: cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [$0, {$2, $3, $4}], [$1]; }", "l,r,r,r,r,r,~{memory}"(i64 5, i32 %number, i32 1, i32 2, i32 3, i32 1)
; expect: call void asm sideeffect "griddepcontrol.wait;", "~{memory}"()
; expect: !{ptr @__smelt_entry, !"minctasm", i32 2}
; absent: call void @__smelt_ptx_
declare void @__smelt_ptx_barrier_init(i32, i32)
declare void @__smelt_ptx_copy_16(i32, i64, i32)
declare void @__smelt_ptx_copy_wait()
declare void @__smelt_ptx_wgmma_wait(i32)
declare void @__smelt_ptx_wgmma(ptr, i64, i64, i32, i32, i32, i32, i32)
declare i32 @__smelt_ptx_exchange(i32, i32)
declare i32 @__smelt_ptx_cluster_address(i32, i32)
declare void @__smelt_ptx_resident(i32)
declare float @__smelt_ptx_max_nan(float, float)
declare void @__smelt_ptx_tensor_store_of(i64, i32, i32, i32, i32, i32)
declare void @__smelt_ptx_wait_previous()
declare void @__smelt_ptx_wgmma_finish(ptr, i32, i32)
declare void @__smelt_ptx_wgmma_registers(ptr, i32, i32, i32, i32, i64, i32, i32, i32, i32)

define void @__smelt_entry(ptr %context) {
  %sums = alloca [4 x float]
  call void @__smelt_ptx_resident(i32 2)
  %number = load i32, ptr %context
  call void @__smelt_ptx_barrier_init(i32 %number, i32 2)
  call void @__smelt_ptx_copy_16(i32 %number, i64 6, i32 16)
  call void @__smelt_ptx_copy_wait()
  call void @__smelt_ptx_wgmma_wait(i32 1)
  call void @__smelt_ptx_wgmma(ptr %sums, i64 1, i64 2, i32 %number, i32 8, i32 1, i32 0, i32 1)
  call void @__smelt_ptx_wgmma_registers(ptr %sums, i32 1, i32 2, i32 3, i32 4, i64 5, i32 %number, i32 8, i32 0, i32 1)
  call void @__smelt_ptx_wgmma_finish(ptr %sums, i32 4, i32 0)
  %other = call i32 @__smelt_ptx_exchange(i32 %number, i32 1)
  store i32 %other, ptr %context
  %address = call i32 @__smelt_ptx_cluster_address(i32 %number, i32 1)
  store i32 %address, ptr %context
  %real = load float, ptr %context
  %larger = call float @__smelt_ptx_max_nan(float %real, float 1.0)
  store float %larger, ptr %context
  call void @__smelt_ptx_tensor_store_of(i64 5, i32 %number, i32 1, i32 2, i32 3, i32 1)
  call void @__smelt_ptx_wait_previous()
  ret void
}
