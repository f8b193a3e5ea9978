; The mark of a function's return ends the thread where only the kernel's end follows, and goes where more does.
; run: all returns
; expect: early:
; expect: store i32 1, ptr %context
; expect: br label %more
; expect: late:
; expect: call void @__smelt_thread_return()
; absent: function_return
declare void @__smelt_function_return()

define void @__smelt_entry(ptr %context) {
entry:
  %a = load i1, ptr %context
  br i1 %a, label %early, label %more
early:
  store i32 1, ptr %context
  call void @__smelt_function_return()
  br label %more
more:
  store i32 2, ptr %context
  %b = load i1, ptr %context
  br i1 %b, label %late, label %end
late:
  call void @__smelt_function_return()
  br label %end
end:
  ret void
}
