; A branch on a value that was loaded looks at its shadow, and tells the checker where the branch is.
; run: check check-undefined
; expect: call ptr @smelt_check_parameters()
; expect: call { ptr, ptr } @smelt_check_load_1(ptr %context)
; expect: call void @smelt_check_used(i32 %{origin:…}, ptr @smelt_check_site2)
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"
define void @__smelt_entry(ptr %context) {
entry:
  %flag = load i1, ptr %context
  br i1 %flag, label %a, label %b
a:
  store i32 1, ptr %context
  br label %b
b:
  ret void
}
