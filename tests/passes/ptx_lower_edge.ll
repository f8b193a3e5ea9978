; In a grid of two dimensions, threads of full groups divide by constants, and only those of groups at the edge by the group's own size.
; run: ptx ptx-target+ptx-retarget+ptx-lower masked=1 threads=32 lines=8
; expect: br i1 %{…}, label %rest, label %edge
; expect: edge:
; expect: urem i32 %{…}, %{…}
; expect: udiv i32 %{…}, %{…}
; expect: br label %rest
; expect: rest:
; expect: phi i32 [ %{…}, %entry ], [ %{…}, %edge ]
declare i32 @__smelt_thread_position(i32)

define void @__smelt_entry(ptr %context) {
entry:
  %x = call i32 @__smelt_thread_position(i32 0)
  %y = call i32 @__smelt_thread_position(i32 1)
  %sum = add i32 %x, %y
  store volatile i32 %sum, ptr %context
  ret void
}
