; None of the matrices may be copied if the code writes elements of one.
; run: ptx ptx-target+bindings+ptx-expanded
; expect: store volatile i64 0, ptr %out
; expect: store volatile i64 0, ptr %out
; expect: tensor 0: index 0, expands 0
; expect: tensor 1: index 1, expands 0
; expect: tensor 2: index 2, expands 0
; absent: expanded tile
; absent: call i64 @__smelt_ptx_expanded
%binding = type { i32, i32, i32, i32, i32, i32 }
%tensor = type { i32, i32, i32, i32, i32, i32, i64, [16 x i64], [16 x i64] }
@__smelt_bindings = constant [7 x %binding] [%binding { i32 1, i32 0, i32 1, i32 1, i32 1, i32 0 }, %binding { i32 1, i32 1, i32 1, i32 1, i32 1, i32 0 }, %binding { i32 1, i32 2, i32 1, i32 1, i32 1, i32 0 }, %binding { i32 1, i32 64, i32 1, i32 1, i32 1, i32 0 }, %binding { i32 1, i32 65, i32 1, i32 1, i32 1, i32 0 }, %binding { i32 1, i32 66, i32 1, i32 1, i32 1, i32 0 }, %binding zeroinitializer]
@__smelt_tensors = constant [3 x %tensor] [%tensor { i32 0, i32 0, i32 2, i32 69, i32 71, i32 0, i64 2147483647, [16 x i64] zeroinitializer, [16 x i64] zeroinitializer }, %tensor { i32 1, i32 1, i32 2, i32 69, i32 71, i32 0, i64 2147483647, [16 x i64] zeroinitializer, [16 x i64] zeroinitializer }, %tensor { i32 2, i32 2, i32 2, i32 69, i32 71, i32 0, i64 2147483647, [16 x i64] zeroinitializer, [16 x i64] zeroinitializer }]
declare ptr @__smelt_buffer_address(i32)
declare i64 @__smelt_ptx_expanded(i32)
declare void @__smelt_ptx_expanded_tile(i32)

define void @__smelt_entry(ptr %context) {
  call void @__smelt_ptx_expanded_tile(i32 64)
  call void @__smelt_ptx_expanded_tile(i32 32768)
  %a = call ptr @__smelt_buffer_address(i32 0)
  %a.scales = call ptr @__smelt_buffer_address(i32 64)
  %b = call ptr @__smelt_buffer_address(i32 1)
  %b.scales = call ptr @__smelt_buffer_address(i32 65)
  %out = call ptr @__smelt_buffer_address(i32 2)
  %x = load i8, ptr %a
  %scale = load i8, ptr %a.scales
  %sum = add i8 %x, %scale
  %place = getelementptr i8, ptr %b, i64 8
  store i8 %sum, ptr %place
  %copy.0 = call i64 @__smelt_ptx_expanded(i32 0)
  %copy.1 = call i64 @__smelt_ptx_expanded(i32 1)
  store volatile i64 %copy.0, ptr %out
  store volatile i64 %copy.1, ptr %out
  ret void
}
