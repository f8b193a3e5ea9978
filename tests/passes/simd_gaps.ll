; Every other byte of a row: two windows of four bytes, of which the second begins in a gap. A half of the same row has no neighbours
; and takes no test either.
; run: simd simd-gang cpu=x86-64-v3
; expect: extractelement <8 x ptr
; expect: load <4 x i8>, ptr
; expect: load <1 x i16>, ptr
define void @__smelt_entry(ptr %context) {
entry:
  %me = call i32 @__smelt_thread_position(i32 0)
  %x = call ptr @__smelt_buffer_address(i32 0)
  %given = call ptr @__smelt_buffer_address(i32 1)
  %rows = addrspacecast ptr %x to ptr addrspace(1)
  %length = load i32, ptr %given
  %mine = mul i32 %me, %length
  %wide = zext i32 %mine to i64
  %row = getelementptr i8, ptr addrspace(1) %rows, i64 %wide
  %a1 = getelementptr i8, ptr addrspace(1) %row, i64 2
  %a2 = getelementptr i8, ptr addrspace(1) %row, i64 4
  %a3 = getelementptr i8, ptr addrspace(1) %row, i64 6
  %s = getelementptr i8, ptr addrspace(1) %row, i64 208
  %v0 = load i8, ptr addrspace(1) %row
  %v1 = load i8, ptr addrspace(1) %a1
  %v2 = load i8, ptr addrspace(1) %a2
  %v3 = load i8, ptr addrspace(1) %a3
  %h = load half, ptr addrspace(1) %s
  %bits = bitcast half %h to i16
  %w = trunc i16 %bits to i8
  %b1 = xor i8 %v0, %v1
  %b2 = mul i8 %b1, %v2
  %b3 = xor i8 %b2, %v3
  %b4 = add i8 %b3, %w
  %at = zext i32 %me to i64
  %to = getelementptr i8, ptr %given, i64 %at
  store i8 %b4, ptr %to
  ret void
}
declare i32 @__smelt_thread_position(i32)
declare ptr @__smelt_buffer_address(i32)
