; A launch may copy the matrices whose copies the code asks for and whose elements and scales it only reads: 0, not 1, whose
; elements it writes, not 2, whose scales it writes, not 3, whose address it stores, but 4, which it reads by way of integers. Of 5
; it does not ask.
; run: ptx ptx-target+bindings+ptx-expanded
; expect: %{place:…} = getelementptr inbounds i8, ptr %context, i64 152
; expect: load i64, ptr %{place:…}, align 8, !invariant.load
; expect: getelementptr inbounds i8, ptr %context, i64 160
; expect: store volatile i64 0, ptr %out
; expect: tensor 0: index 0, expands 1
; expect: tensor 1: index 1, expands 0
; expect: tensor 2: index 2, expands 0
; expect: tensor 3: index 3, expands 0
; expect: tensor 4: index 4, expands 1
; expect: tensor 5: index 5, expands 0
; expect: expanded tile: 32768
; absent: call void @__smelt_ptx_expanded
; run: ptx ptx-target+bindings+ptx-expanded tested=1
; expect: tensor 0: index 0, expands 0
; absent: expanded tile
%binding = type { i32, i32, i32, i32, i32, i32 }
%tensor = type { i32, i32, i32, i32, i32, i32, i64, [16 x i64], [16 x i64] }
@__smelt_bindings = constant [13 x %binding] [%binding { i32 1, i32 0, i32 1, i32 1, i32 1, i32 0 }, %binding { i32 1, i32 1, i32 1, i32 1, i32 1, i32 0 }, %binding { i32 1, i32 2, i32 1, i32 1, i32 1, i32 0 }, %binding { i32 1, i32 3, i32 1, i32 1, i32 1, i32 0 }, %binding { i32 1, i32 4, i32 1, i32 1, i32 1, i32 0 }, %binding { i32 1, i32 5, i32 1, i32 1, i32 1, i32 0 }, %binding { i32 1, i32 64, i32 1, i32 1, i32 1, i32 0 }, %binding { i32 1, i32 65, i32 1, i32 1, i32 1, i32 0 }, %binding { i32 1, i32 66, i32 1, i32 1, i32 1, i32 0 }, %binding { i32 1, i32 67, i32 1, i32 1, i32 1, i32 0 }, %binding { i32 1, i32 68, i32 1, i32 1, i32 1, i32 0 }, %binding { i32 1, i32 69, i32 1, i32 1, i32 1, i32 0 }, %binding zeroinitializer]
@__smelt_tensors = constant [6 x %tensor] [%tensor { i32 0, i32 0, i32 2, i32 69, i32 71, i32 0, i64 2147483647, [16 x i64] zeroinitializer, [16 x i64] zeroinitializer }, %tensor { i32 1, i32 1, i32 2, i32 69, i32 71, i32 0, i64 2147483647, [16 x i64] zeroinitializer, [16 x i64] zeroinitializer }, %tensor { i32 2, i32 2, i32 2, i32 69, i32 71, i32 0, i64 2147483647, [16 x i64] zeroinitializer, [16 x i64] zeroinitializer }, %tensor { i32 3, i32 3, i32 2, i32 69, i32 71, i32 0, i64 2147483647, [16 x i64] zeroinitializer, [16 x i64] zeroinitializer }, %tensor { i32 4, i32 4, i32 2, i32 69, i32 71, i32 0, i64 2147483647, [16 x i64] zeroinitializer, [16 x i64] zeroinitializer }, %tensor { i32 5, i32 5, i32 2, i32 69, i32 71, i32 0, i64 2147483647, [16 x i64] zeroinitializer, [16 x i64] zeroinitializer }]
declare ptr @__smelt_buffer_address(i32)
declare i64 @__smelt_ptx_expanded(i32)
declare void @__smelt_ptx_expanded_tile(i32)

define void @__smelt_entry(ptr %context) {
  call void @__smelt_ptx_expanded_tile(i32 64)
  call void @__smelt_ptx_expanded_tile(i32 32768)
  %a = call ptr @__smelt_buffer_address(i32 0)
  %a.scales = call ptr @__smelt_buffer_address(i32 64)
  %b = call ptr @__smelt_buffer_address(i32 1)
  %c = call ptr @__smelt_buffer_address(i32 2)
  %c.scales = call ptr @__smelt_buffer_address(i32 66)
  %d = call ptr @__smelt_buffer_address(i32 3)
  %e = call ptr @__smelt_buffer_address(i32 4)
  %out = call ptr @__smelt_buffer_address(i32 5)
  %x = load i8, ptr %a
  %scale = load i8, ptr %a.scales
  %sum = add i8 %x, %scale
  %b.place = getelementptr i8, ptr %b, i64 8
  store i8 %sum, ptr %b.place
  %c.number = ptrtoint ptr %c.scales to i64
  %c.moved = add i64 %c.number, 4
  %c.place = inttoptr i64 %c.moved to ptr
  store i8 %sum, ptr %c.place
  %cell = getelementptr ptr, ptr %out, i64 1
  store ptr %d, ptr %cell
  %e.number = ptrtoint ptr %e to i64
  %e.moved = and i64 %e.number, -16
  %e.place = inttoptr i64 %e.moved to ptr
  %y = load i8, ptr %e.place
  %aligned = icmp eq i64 %e.moved, %e.number
  %z = select i1 %aligned, i8 %y, i8 0
  store i8 %z, ptr %out
  %copy.0 = call i64 @__smelt_ptx_expanded(i32 0)
  %copy.1 = call i64 @__smelt_ptx_expanded(i32 1)
  %copy.2 = call i64 @__smelt_ptx_expanded(i32 2)
  %copy.3 = call i64 @__smelt_ptx_expanded(i32 3)
  %copy.4 = call i64 @__smelt_ptx_expanded(i32 4)
  store volatile i64 %copy.0, ptr %out
  store volatile i64 %copy.1, ptr %out
  store volatile i64 %copy.2, ptr %out
  store volatile i64 %copy.3, ptr %out
  store volatile i64 %copy.4, ptr %out
  ret void
}
