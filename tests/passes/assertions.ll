; Engines that do not check lose an assertion and its condition; a checked engine keeps both.
; run: scalar declare+assertions
; expect: ret void
; absent: load i32
; absent: __smelt_assertion
; absent: __smelt_is_checked
; run: check declare+assertions
; expect: load i32
; expect: call void @__smelt_assertion
; absent: %checked
@text = private constant [6 x i8] c"i < 3\00"
declare i1 @__smelt_is_checked() #0
declare void @__smelt_assertion(ptr)
define void @__smelt_entry(ptr %context) {
  %checked = call i1 @__smelt_is_checked()
  br i1 %checked, label %asserts, label %end
asserts:
  %i = load i32, ptr %context
  %holds = icmp slt i32 %i, 3
  br i1 %holds, label %end, label %fails
fails:
  call void @__smelt_assertion(ptr @text)
  br label %end
end:
  ret void
}
attributes #0 = { memory(none) }
