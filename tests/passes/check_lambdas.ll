; What a lambda captures by reference is a pointer that is written once: it gives way to the variable, also in a copy of
; the lambda. A member that is written twice, one that another access overlaps, and members of a variable that an access
; misses, stay.
; run: check check-private
; absent: alloca %lambda, align 8
; absent: alloca %lambda, align 16
; expect: %{captured:…} = call ptr @smelt_check_object(ptr %captured)
; expect: %twice = alloca %lambda, align 32
; expect: %missed = alloca %lambda, align 64
; expect: store i32 7, ptr %{captured:…}
; expect: %n = load i32, ptr %context
; expect: store i32 %n, ptr %{captured:…}
; expect: %h = load i32, ptr %half
; expect: %c = load ptr, ptr %twice
; expect: %d = load ptr, ptr %beyond
target triple = "x86_64-unknown-linux-gnu"
%lambda = type { ptr, ptr }
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define void @__smelt_entry(ptr %context, i1 %condition) {
  %captured = alloca i32
  %first = alloca %lambda, align 8
  %copy = alloca %lambda, align 16
  %twice = alloca %lambda, align 32
  %missed = alloca %lambda, align 64
  store ptr %captured, ptr %first
  %other = getelementptr %lambda, ptr %first, i32 0, i32 1
  store ptr %context, ptr %other
  call void @llvm.memcpy.p0.p0.i64(ptr %copy, ptr %first, i64 16, i1 false)
  %a = load ptr, ptr %copy
  store i32 7, ptr %a
  %its.other = getelementptr %lambda, ptr %copy, i32 0, i32 1
  %b = load ptr, ptr %its.other
  %n = load i32, ptr %b
  store i32 %n, ptr %a
  store ptr %captured, ptr %twice
  %overlapped = getelementptr %lambda, ptr %twice, i32 0, i32 1
  store ptr %captured, ptr %overlapped
  %half = getelementptr i8, ptr %twice, i64 12
  %h = load i32, ptr %half
  store i32 %h, ptr %context
  br i1 %condition, label %again, label %end
again:
  store ptr %context, ptr %twice
  br label %end
end:
  %c = load ptr, ptr %twice
  store i32 1, ptr %c
  %beyond = getelementptr %lambda, ptr %missed, i32 1, i32 0
  store ptr %captured, ptr %beyond
  %d = load ptr, ptr %beyond
  store i32 2, ptr %d
  ret void
}
