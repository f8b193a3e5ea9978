; Look-ups in constant tables of at most 16 bytes are permutations of words; of longer ones, loads.
; run: ptx ptx-target+ptx-tables
; expect: call i32 @llvm.nvvm.prmt(i32 50462976, i32 201721348, i32 %i)
; expect: %{low:…} = and i32 %i, 7
; expect: call i32 @llvm.nvvm.prmt(i32 67305985, i32 134678021, i32 %{low:…})
; expect: call i32 @llvm.nvvm.prmt(i32 202050057, i32 269422093, i32 %{low:…})
; expect: load i8, ptr addrspace(1) %long.at
; absent: load i8, ptr addrspace(1) %short.at
; absent: load i8, ptr addrspace(1) %even.at
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@short = internal addrspace(1) constant [8 x i8] c"\00\01\02\03\04\06\06\0C"
@even = internal addrspace(1) constant [16 x i8] c"\01\02\03\04\05\06\07\08\09\0A\0B\0C\0D\0E\0F\10"
@long = internal addrspace(1) constant [17 x i8] c"\01\02\03\04\05\06\07\08\09\0A\0B\0C\0D\0E\0F\10\11"

define void @__smelt_entry(ptr nocapture %context) {
  %i = load i32, ptr %context
  %wide = zext i32 %i to i64
  %short.at = getelementptr inbounds [8 x i8], ptr addrspace(1) @short, i64 0, i64 %wide
  %a = load i8, ptr addrspace(1) %short.at
  store i8 %a, ptr %context
  %even.at = getelementptr inbounds [16 x i8], ptr addrspace(1) @even, i64 0, i64 %wide
  %b = load i8, ptr addrspace(1) %even.at
  store i8 %b, ptr %context
  %long.at = getelementptr inbounds [17 x i8], ptr addrspace(1) @long, i64 0, i64 %wide
  %c = load i8, ptr addrspace(1) %long.at
  store i8 %c, ptr %context
  ret void
}
