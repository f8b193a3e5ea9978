; A thread's eight neighbouring bytes, 64 bytes from those of the next lane: a vector for each lane, with registers of any width.
; run: simd simd-gang cpu=x86-64-v4 threads=32
; run: simd simd-gang cpu=x86-64-v3 threads=32
; expect: load <8 x i8>
; expect: load <8 x i8>
; absent: load i8
declare i32 @__smelt_lane()
declare ptr @__smelt_buffer_address(i32)

define void @__smelt_entry(ptr %context) {
entry:
  %in = call ptr @__smelt_buffer_address(i32 0)
  %from = addrspacecast ptr %in to ptr addrspace(5)
  %out = call ptr @__smelt_buffer_address(i32 1)
  %to = addrspacecast ptr %out to ptr addrspace(5)
  %lane = call i32 @__smelt_lane()
  %wide = zext i32 %lane to i64
  %mine = getelementptr inbounds [64 x i8], ptr addrspace(5) %from, i64 %wide
  %p1 = getelementptr inbounds i8, ptr addrspace(5) %mine, i64 1
  %p2 = getelementptr inbounds i8, ptr addrspace(5) %mine, i64 2
  %p3 = getelementptr inbounds i8, ptr addrspace(5) %mine, i64 3
  %p4 = getelementptr inbounds i8, ptr addrspace(5) %mine, i64 4
  %p5 = getelementptr inbounds i8, ptr addrspace(5) %mine, i64 5
  %p6 = getelementptr inbounds i8, ptr addrspace(5) %mine, i64 6
  %p7 = getelementptr inbounds i8, ptr addrspace(5) %mine, i64 7
  %a = load i8, ptr addrspace(5) %mine
  %b = load i8, ptr addrspace(5) %p1
  %c = load i8, ptr addrspace(5) %p2
  %d = load i8, ptr addrspace(5) %p3
  %e = load i8, ptr addrspace(5) %p4
  %f = load i8, ptr addrspace(5) %p5
  %g = load i8, ptr addrspace(5) %p6
  %h = load i8, ptr addrspace(5) %p7
  %ab = xor i8 %a, %b
  %cd = add i8 %c, %d
  %ef = xor i8 %e, %f
  %gh = add i8 %g, %h
  %abcd = mul i8 %ab, %cd
  %efgh = mul i8 %ef, %gh
  %all = add i8 %abcd, %efgh
  %at = getelementptr inbounds i8, ptr addrspace(5) %to, i64 %wide
  store i8 %all, ptr addrspace(5) %at
  ret void
}
