; A variable begins with a value of the checker; an array that an access may miss gets its address from there.
; run: check check-private
; expect: %single = alloca i32
; expect: %{value:…} = call i64 @smelt_check_undefined(ptr @smelt_check_site1)
; expect: %{narrow:…} = trunc i64 %{value:…} to i32
; expect: %array = alloca [4 x i32]
; expect: %{hidden:…} = call ptr @smelt_check_object(ptr %array)
; expect: getelementptr [4 x i32], ptr %{hidden:…}, i64 0, i64 %i
target triple = "x86_64-unknown-linux-gnu"
define void @__smelt_entry(ptr %context) {
  %single = alloca i32
  %array = alloca [4 x i32]
  %i = load i64, ptr %context
  %a = load i32, ptr %single
  %place = getelementptr [4 x i32], ptr %array, i64 0, i64 %i
  store i32 %a, ptr %place
  ret void
}
