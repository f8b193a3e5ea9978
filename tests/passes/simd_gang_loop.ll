; One call runs all gangs of a group: what is the same for them, which are fields of the group and addresses of buffers, is
; read once; a gang's own position and what a buffer contains are read for each gang.
; run: simd simd-gang-loop
; expect: gangs:
; expect: %{slot:…} = alloca i32
; expect: %{group:…} = load ptr, ptr %0
; expect: %{at:…} = getelementptr i8, ptr %{group:…}, i64 24
; expect: %{size:…} = load i32, ptr %{at:…}
; expect: %{table_at:…} = getelementptr i8, ptr %{group:…}, i64 64
; expect: %{table:…} = load ptr, ptr %{table_at:…}
; expect: %{buffer:…} = load ptr, ptr %{table:…}
; expect: br label %first
; expect: first:
; expect: %gang = phi ptr [ %0, %gangs ], [ %next, %next_gang ]
; expect: store ptr %gang, ptr %{running:…}
; expect: %position = load i32, ptr %position.at
; expect: there:
; expect: %bound = load i32, ptr %{buffer:…}
; expect: br label %next_gang
; expect: last:
; expect: br label %next_gang
; expect: next_gang:
; expect: %next = load ptr, ptr %{next_at:…}
; expect: end:
; expect: ret void
define void @__smelt_entry(ptr %0) {
first:
  %slot = alloca i32
  %group = load ptr, ptr %0, !invariant.load !0
  %position.at = getelementptr i8, ptr %0, i64 16
  %position = load i32, ptr %position.at, !invariant.load !0
  %size.at = getelementptr i8, ptr %group, i64 24
  %size = load i32, ptr %size.at, !invariant.load !0
  %within = icmp ult i32 %position, %size
  br i1 %within, label %there, label %last
there:
  %buffers.at = getelementptr i8, ptr %group, i64 64
  %buffers = load ptr, ptr %buffers.at, !invariant.load !0
  %buffer = load ptr, ptr %buffers, !invariant.load !0
  %bound = load i32, ptr %buffer, !invariant.load !0
  store i32 %bound, ptr %slot
  ret void
last:
  ret void
}
!0 = !{}
