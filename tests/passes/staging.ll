; All callers share one variable, of the largest size.
; run: all staging
; expect: @{memory:…} = internal addrspace(3) global [4096 x i8] undef, align 1024
; expect: store i8 1, ptr addrspace(3) @{memory:…}
; expect: store i8 2, ptr addrspace(3) @{memory:…}
; absent: call
declare ptr addrspace(3) @__smelt_staging(i32)

define void @__smelt_entry(ptr %context) {
  %a = call ptr addrspace(3) @__smelt_staging(i32 256)
  store i8 1, ptr addrspace(3) %a
  %b = call ptr addrspace(3) @__smelt_staging(i32 4096)
  store i8 2, ptr addrspace(3) %b
  ret void
}
