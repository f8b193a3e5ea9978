; Where no instruction takes a whole warp, branches are not marked: a barrier of the threadgroup is none.
; run: ptx ptx-target+ptx-lower+ptx-uniform threads=64
; expect: br i1 %of.simdgroup
declare i32 @__smelt_simdgroup()

define void @__smelt_entry(ptr %context) {
entry:
  %simdgroup = call i32 @__smelt_simdgroup()
  %of.simdgroup = icmp eq i32 %simdgroup, 1
  br i1 %of.simdgroup, label %a, label %b

a:
  store i32 1, ptr addrspace(1) null
  br label %b

b:
  ret void
}
