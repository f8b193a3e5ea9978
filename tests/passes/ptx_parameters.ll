; Buffers whose contents travel with the launch are read from the kernel's parameter; of others it has addresses. All of the
; parameter can be read: 56 bytes, an address for each buffer, and the contents.
; run: ptx ptx-target+bindings+ptx-inline inlined=1
; expect: align 16 dereferenceable(96)
; expect: %{place:…} = getelementptr inbounds i8, ptr %context, i64 {…}
; expect: load i32, ptr %{place:…}, align 4, !invariant.load
; expect: call ptr @__smelt_buffer_address(i32 1)
; absent: call ptr @__smelt_buffer_address(i32 0)
; expect: binding 0: kind 1, index 0, inlined 16
; expect: binding 1: kind 1, index 1, inlined 0
; run: ptx ptx-target+bindings+ptx-retarget+ptx-addresses aligned=1
; expect: getelementptr inbounds i8, ptr %context, i64 {…}
; expect: load ptr addrspace(1), ptr %{…}, align 8, !invariant.load {…}, !align
; absent: call ptr @__smelt_buffer_address
%binding = type { i32, i32, i32, i32, i32, i32 }
@__smelt_bindings = constant [3 x %binding] [%binding { i32 1, i32 0, i32 4, i32 4, i32 0, i32 0 }, %binding { i32 1, i32 1, i32 4, i32 4, i32 1, i32 0 }, %binding zeroinitializer]
declare ptr @__smelt_buffer_address(i32)

define void @__smelt_entry(ptr %context) {
  %size = call ptr @__smelt_buffer_address(i32 0)
  %x = load i32, ptr %size
  %out = call ptr @__smelt_buffer_address(i32 1)
  store i32 %x, ptr %out
  ret void
}
