; Intrinsics get attributes from their row of the table; all functions but the entry are inlined, later.
; run: all declare
; expect: declare void @__smelt_threadgroup_barrier(i32, i32, ptr) #{barrier:…}
; expect: declare i32 @__smelt_lane() #{lane:…}
; expect: define internal void @helper() #{helper:…} {
; expect: attributes #{barrier:…} = { convergent nounwind }
; expect: attributes #{lane:…} = { nomerge nounwind speculatable willreturn memory(none) }
; expect: attributes #{helper:…} = { alwaysinline
; absent: noinline
; absent: comdat
$helper = comdat any

declare void @__smelt_threadgroup_barrier(i32, i32, ptr) convergent
declare i32 @__smelt_lane() convergent memory(none)

define linkonce_odr void @helper() noinline optnone comdat {
  call void @__smelt_threadgroup_barrier(i32 2, i32 1, ptr null)
  ret void
}

define void @__smelt_entry(ptr %context) {
  %lane = call i32 @__smelt_lane()
  store i32 %lane, ptr %context
  call void @helper()
  ret void
}
