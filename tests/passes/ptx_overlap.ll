; A round loads the next one's element before it multiplies, if there is a next one. Where the address of an element is itself loaded, or the
; loop comes after a store to device memory, elements are loaded where they are needed.
; run: ptx ptx-target+ptx-overlap
; expect: = load float, ptr addrspace(1) %array
; expect: call void @llvm.nvvm.barrier0()
; expect: @$2 ld.global.b32 $0, [$1]
; expect: %late = load float, ptr addrspace(1) %late.at
; expect: %behind = load float, ptr addrspace(1) %behind.at
; absent: %x = load
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@tile = internal addrspace(3) global [64 x float] undef

declare void @llvm.nvvm.barrier0()

define void @__smelt_entry(ptr %context) {
entry:
  %array = load ptr addrspace(1), ptr %context, align 8
  %n.at = getelementptr inbounds i8, ptr %context, i64 8
  %n = load i64, ptr %n.at, align 8
  br label %round
round:
  %i = phi i64 [ 0, %entry ], [ %next, %round ]
  %sum = phi i32 [ 0, %entry ], [ %more, %round ]
  %x.at = getelementptr inbounds float, ptr addrspace(1) %array, i64 %i
  %x = load float, ptr addrspace(1) %x.at, align 4
  store float %x, ptr addrspace(3) @tile, align 4
  call void @llvm.nvvm.barrier0()
  %y = load i32, ptr addrspace(3) @tile, align 4
  %more = call i32 asm "mma.sync.aligned $0, $1, $2;", "=r,r,r"(i32 %y, i32 %sum)
  call void @llvm.nvvm.barrier0()
  %next = add nuw nsw i64 %i, 1
  %again = icmp ult i64 %next, %n
  br i1 %again, label %round, label %middle
middle:
  br label %second
second:
  %k = phi i64 [ 0, %middle ], [ %k.next, %second ]
  %total = phi i32 [ %more, %middle ], [ %total.more, %second ]
  %index.at = getelementptr inbounds i32, ptr addrspace(1) %array, i64 %k
  %index = load i32, ptr addrspace(1) %index.at, align 4
  %late.at = getelementptr inbounds float, ptr addrspace(1) %array, i32 %index
  %late = load float, ptr addrspace(1) %late.at, align 4
  store float %late, ptr addrspace(3) @tile, align 4
  call void @llvm.nvvm.barrier0()
  %z = load i32, ptr addrspace(3) @tile, align 4
  %total.more = call i32 asm "mma.sync.aligned $0, $1, $2;", "=r,r,r"(i32 %z, i32 %total)
  call void @llvm.nvvm.barrier0()
  %k.next = add nuw nsw i64 %k, 1
  %k.again = icmp ult i64 %k.next, %n
  br i1 %k.again, label %second, label %end
end:
  store i32 %total.more, ptr addrspace(1) %array, align 4
  br label %third
third:
  %m = phi i64 [ 0, %end ], [ %m.next, %third ]
  %last = phi i32 [ 0, %end ], [ %last.more, %third ]
  %behind.at = getelementptr inbounds float, ptr addrspace(1) %array, i64 %m
  %behind = load float, ptr addrspace(1) %behind.at, align 4
  store float %behind, ptr addrspace(3) @tile, align 4
  call void @llvm.nvvm.barrier0()
  %w = load i32, ptr addrspace(3) @tile, align 4
  %last.more = call i32 asm "mma.sync.aligned $0, $1, $2;", "=r,r,r"(i32 %w, i32 %last)
  call void @llvm.nvvm.barrier0()
  %m.next = add nuw nsw i64 %m, 1
  %m.again = icmp ult i64 %m.next, %n
  br i1 %m.again, label %third, label %over
over:
  store i32 %last.more, ptr addrspace(1) %array, align 4
  ret void
}
