; Loops without a barrier, in a kernel with one: a step of 1024 bytes, of which a gang loads a part, prefetches eight rounds ahead, and
; one of 4096 bytes two. Nothing is prefetched where a step is known only at run time, or where it is as short as what a gang loads.
; run: simd simd-prefetch cpu=x86-64-v3
; expect: row:
; expect: load float, ptr addrspace(5) %element
; expect: %{next:…} = getelementptr i8, ptr addrspace(5) %element, i64 1024
; expect: %{ahead:…} = getelementptr i8, ptr addrspace(5) %{next:…}, i64 7168
; expect: call void @llvm.prefetch.p5(ptr addrspace(5) %{ahead:…}, i32 0, i32 3, i32 1)
; expect: wide:
; expect: %{next2:…} = getelementptr i8, ptr addrspace(5) %element2, i64 4096
; expect: %{ahead2:…} = getelementptr i8, ptr addrspace(5) %{next2:…}, i64 4096
; expect: call void @llvm.prefetch.p5(ptr addrspace(5) %{ahead2:…}, i32 0, i32 3, i32 1)
; absent: ptr addrspace(5) %element3, i64
; absent: ptr addrspace(5) %element4, i64
define void @__smelt_entry(ptr %context) {
entry:
  %me = call i32 @__smelt_position_in_threadgroup(i32 0)
  %length = call i32 @__smelt_grid_threads(i32 0)
  %x = call ptr @__smelt_buffer_address(i32 0)
  %device = addrspacecast ptr %x to ptr addrspace(5)
  br label %row
row:
  %i = phi i32 [ %me, %entry ], [ %next, %row ]
  %wide.i = zext i32 %i to i64
  %element = getelementptr float, ptr addrspace(5) %device, i64 %wide.i
  %a = load float, ptr addrspace(5) %element
  store volatile float %a, ptr addrspace(3) @tile
  %next = add i32 %i, 256
  %more = icmp ult i32 %next, %length
  br i1 %more, label %row, label %wide
wide:
  %j = phi i32 [ %me, %row ], [ %next2, %wide ]
  %wide.j = zext i32 %j to i64
  %element2 = getelementptr float, ptr addrspace(5) %device, i64 %wide.j
  %b = load float, ptr addrspace(5) %element2
  store volatile float %b, ptr addrspace(3) @tile
  %next2 = add i32 %j, 1024
  %more2 = icmp ult i32 %next2, %length
  br i1 %more2, label %wide, label %any
any:
  %k = phi i32 [ %me, %wide ], [ %next3, %any ]
  %wide.k = zext i32 %k to i64
  %element3 = getelementptr float, ptr addrspace(5) %device, i64 %wide.k
  %c = load float, ptr addrspace(5) %element3
  store volatile float %c, ptr addrspace(3) @tile
  %next3 = add i32 %k, %length
  %more3 = icmp ult i32 %next3, 4096
  br i1 %more3, label %any, label %short
short:
  %l = phi i32 [ %me, %any ], [ %next4, %short ]
  %wide.l = zext i32 %l to i64
  %element4 = getelementptr float, ptr addrspace(5) %device, i64 %wide.l
  %d = load float, ptr addrspace(5) %element4
  store volatile float %d, ptr addrspace(3) @tile
  %next4 = add i32 %l, 32
  %more4 = icmp ult i32 %next4, %length
  br i1 %more4, label %short, label %done
done:
  call void @__smelt_threadgroup_barrier(i32 2, i32 1, ptr null)
  ret void
}
@tile = internal addrspace(3) global float undef
declare i32 @__smelt_position_in_threadgroup(i32)
declare i32 @__smelt_grid_threads(i32)
declare ptr @__smelt_buffer_address(i32)
declare void @__smelt_threadgroup_barrier(i32, i32, ptr)
