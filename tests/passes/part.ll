; A way out of a loop with barriers becomes a part of the loop: an edge nobody takes leads back to its header.
; run: all part
; expect: call void @__smelt_threadgroup_barrier(
; expect: store i32 7, ptr %context
; expect: call void @__smelt_thread_return()
; expect: %{never:…} = call i1 @__smelt_never()
; expect: br i1 %{never:…}, label %round, label
; run: all hold
; absent: __smelt_never
declare void @__smelt_threadgroup_barrier(i32, i32, ptr)
declare void @__smelt_thread_return()
declare i32 @__smelt_lane()

define void @__smelt_entry(ptr %context) {
entry:
  %lane = call i32 @__smelt_lane()
  br label %round
round:
  %n = phi i32 [ 0, %entry ], [ %next, %more ]
  %stop = icmp eq i32 %n, %lane
  br i1 %stop, label %leave, label %more
leave:
  store i32 7, ptr %context
  call void @__smelt_thread_return()
  br label %end
more:
  call void @__smelt_threadgroup_barrier(i32 2, i32 3, ptr null)
  %next = add i32 %n, 1
  %again = icmp ult i32 %next, 8
  br i1 %again, label %round, label %end
end:
  ret void
}
