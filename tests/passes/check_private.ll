; A variable begins with a value of the checker; an array that an access may miss gets its address from there.
; A pointer variable that is written once gives way to the pointer; one that may be read before it is written, or that is
; written twice, stays.
; run: check check-private
; expect: %single = alloca i32
; expect: %{value:…} = call i64 @smelt_check_undefined(ptr @smelt_check_site1)
; expect: %{narrow:…} = trunc i64 %{value:…} to i32
; expect: %array = alloca [4 x i32]
; expect: %{hidden:…} = call ptr @smelt_check_object(ptr %array)
; expect: getelementptr [4 x i32], ptr %{hidden:…}, i64 0, i64 %i
; absent: alloca ptr, align 8
; expect: %early = alloca ptr, align 16
; expect: %twice = alloca ptr, align 32
; expect: %pointee = alloca i32
; absent: @smelt_check_object(ptr %pointee)
; expect: store i32 5, ptr %pointee
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

define void @pointers(ptr %context, i1 %condition) {
  %this = alloca ptr, align 8
  %early = alloca ptr, align 16
  %twice = alloca ptr, align 32
  %pointee = alloca i32
  store ptr %pointee, ptr %this, align 8
  store ptr %context, ptr %twice, align 32
  br i1 %condition, label %written, label %read
written:
  store ptr %context, ptr %early, align 16
  store ptr null, ptr %twice, align 32
  br label %read
read:
  %p = load ptr, ptr %this, align 8
  %q = load ptr, ptr %early, align 16
  %r = load ptr, ptr %twice, align 32
  store i32 5, ptr %p
  store i32 6, ptr %q
  store i32 7, ptr %r
  ret void
}

define void @beside(ptr %context) {
  %only = alloca ptr, align 8
  store ptr %context, ptr %only, align 8
  %r = load ptr, ptr %only, align 8
  store i32 8, ptr %r
  ret void
}
