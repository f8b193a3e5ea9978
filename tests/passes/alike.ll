; Operations that the whole threadgroup executes alike: 2 in a loop; 1 outside, or if device memory may have changed before; 0 if an
; argument differs between simdgroups, or in a branch of some threads. Calls with 1 share memory; those with 2 have their own.
; run: ptx ptx-target+alike threads=128
; expect: @{shared:…} = internal addrspace(3) global [64 x i8]
; expect: @{own:…} = internal addrspace(3) global [192 x i8]
; expect: store i32 0, ptr addrspace(5) %out
; expect: store i32 18, ptr addrspace(5) %out
; expect: store ptr addrspace(3) @{own:…}, ptr addrspace(5) %out
; expect: store ptr addrspace(3) @{shared:…}, ptr addrspace(5) %out
; absent: call i32 @__smelt_alike
; Threads that have ended take no part.
; run: ptx ptx-target+alike threads=48
; expect: store i32 0, ptr addrspace(5) %out
; expect: store i32 0, ptr addrspace(5) %out
declare i32 @__smelt_alike(i32, i64, i64, i64, i64, i64)
declare ptr addrspace(3) @__smelt_alike_memory(i32)
declare i32 @__smelt_simdgroup()
declare i32 @__smelt_thread_index()
declare ptr @__smelt_buffer_address(i32)
declare i32 @__smelt_threadgroup_position(i32)

define void @__smelt_entry(ptr %context) {
entry:
  %address = call ptr @__smelt_buffer_address(i32 0)
  %out = addrspacecast ptr %address to ptr addrspace(5)
  %group = call i32 @__smelt_threadgroup_position(i32 0)
  %same = zext i32 %group to i64
  %simdgroup = call i32 @__smelt_simdgroup()
  %other = zext i32 %simdgroup to i64
  %thread = call i32 @__smelt_thread_index()
  br label %loop
loop:
  %round = phi i32 [ 0, %entry ], [ %next, %loop ]
  %next = add i32 %round, 1
  %first = call i32 @__smelt_alike(i32 64, i64 %same, i64 2, i64 3, i64 4, i64 5)
  %memory = call ptr addrspace(3) @__smelt_alike_memory(i32 %first)
  %second = call i32 @__smelt_alike(i32 64, i64 %other, i64 2, i64 3, i64 4, i64 5)
  %again = icmp ult i32 %next, %group
  br i1 %again, label %loop, label %behind
behind:
  %few = icmp ult i32 %thread, 5
  br i1 %few, label %some, label %all
some:
  %third = call i32 @__smelt_alike(i32 64, i64 %same, i64 2, i64 3, i64 4, i64 5)
  store i32 %third, ptr addrspace(5) %out
  br label %all
all:
  %fourth = call i32 @__smelt_alike(i32 64, i64 %same, i64 2, i64 3, i64 4, i64 5)
  %memory4 = call ptr addrspace(3) @__smelt_alike_memory(i32 %fourth)
  %a = mul i32 %second, 4
  %b = mul i32 %fourth, 16
  %c = add i32 %a, %b
  %d = add i32 %c, %first
  store i32 %d, ptr addrspace(5) %out
  store ptr addrspace(3) %memory, ptr addrspace(5) %out
  store ptr addrspace(3) %memory4, ptr addrspace(5) %out
  ret void
}
