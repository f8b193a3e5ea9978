; A variable that holds one function gives way to it; one that holds either of two stays.
; run: check check-functions
; expect: call i32 @double(i32 %x)
; expect: load ptr, ptr %either
define i32 @double(i32 %x) {
  %y = shl i32 %x, 1
  ret i32 %y
}
define i32 @same(i32 %x) {
  ret i32 %x
}
define void @__smelt_entry(ptr %context) {
  %one = alloca ptr
  %either = alloca ptr
  %x = load i32, ptr %context
  store ptr @double, ptr %one
  store ptr @double, ptr %either
  %f = load ptr, ptr %one
  %y = call i32 %f(i32 %x)
  %odd = trunc i32 %y to i1
  br i1 %odd, label %change, label %end
change:
  store ptr @same, ptr %either
  br label %end
end:
  %g = load ptr, ptr %either
  %z = call i32 %g(i32 %y)
  store i32 %z, ptr %context
  ret void
}
