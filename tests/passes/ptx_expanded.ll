; A launch may copy the matrices whose copies the code asks for, 0 and 1, as it only reads their elements and scales, also by way of
; integers. Of 2 it does not ask.
; run: ptx ptx-target+bindings+ptx-expanded
; expect: %{first:…} = getelementptr inbounds i8, ptr %context, i64 104
; expect: %{loaded:…} = load i64, ptr %{first:…}, align 8, !invariant.load
; expect: %{second:…} = getelementptr inbounds i8, ptr %context, i64 112
; expect: %{next:…} = load i64, ptr %{second:…}, align 8, !invariant.load
; expect: store volatile i64 %{loaded:…}, ptr %out
; expect: store volatile i64 %{next:…}, ptr %out
; expect: tensor 0: index 0, expands 1
; expect: tensor 1: index 1, expands 1
; expect: tensor 2: index 2, expands 0
; expect: expanded tile: 32768
; absent: call i64 @__smelt_ptx_expanded
; run: ptx ptx-target+bindings+ptx-expanded tested=1
; expect: store volatile i64 0, ptr %out
; expect: store volatile i64 0, ptr %out
; expect: tensor 0: index 0, expands 0
; absent: expanded tile
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
  %number = ptrtoint ptr %b to i64
  %moved = and i64 %number, -16
  %place = inttoptr i64 %moved to ptr
  %y = load i8, ptr %place
  %aligned = icmp eq i64 %moved, %number
  %z = select i1 %aligned, i8 %y, i8 %sum
  store i8 %z, ptr %out
  %copy.0 = call i64 @__smelt_ptx_expanded(i32 0)
  %copy.1 = call i64 @__smelt_ptx_expanded(i32 1)
  store volatile i64 %copy.0, ptr %out
  store volatile i64 %copy.1, ptr %out
  ret void
}
