; What Metal leaves undefined is marked, initialisers lose their marks, and marks become tests.
; run: check check-marked
; expect: define i32 @initialiser
; expect: call i32 @smelt.check.add.i32.i32.i32(
; expect: define void @__smelt_entry
; expect: %sum = add nsw i32 %a, %b
; expect: %{marked:…} = call i32 @smelt.check.add.i32.i32.i32(i32 %sum, i32 %a, i32 %b)
; expect: %wrapped = add i32 %{marked:…}, %b
; expect: %{count:…} = call i32 @smelt.check.shift.i32(i32 %b)
; expect: %shifted = shl i32 %wrapped, %{count:…}
; expect: %{by:…} = call i32 @smelt.check.divide.i32.i32(i32 %b, i32 %shifted)
; expect: %quotient = sdiv i32 %shifted, %{by:…}
; expect: %half = sdiv i32 %quotient, 2
; expect: %{number:…} = call float @smelt.check.convert.float.i32(float %f, i32 0)
; expect: call i32 @llvm.fptosi.sat.i32.f32(float %{number:…})
; run: check check-unmarked
; expect: define i32 @initialiser
; expect: ret i32 %known
; expect: call i32 @smelt.check.add.i32.i32.i32(i32 %before, i32 1, i32 2)
; absent: %marked = call
; run: check check-tested
; expect: define void @__smelt_entry
; expect: icmp slt i32 %{…}, 0, !nosanitize
; expect: br i1 %{…}, label %wrong, label %rest, !nosanitize
; expect: wrong:
; expect: call void @smelt_check_arithmetic(i64 1, i64 2, i32 8192, ptr @smelt_check_site2)
; expect: br label %rest
; expect: rest:
; expect: store i32 %before
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"
declare i32 @llvm.fptosi.sat.i32.f32(float)
declare i32 @smelt.check.add.i32.i32.i32(i32, i32, i32)
define i32 @initialiser(i32 %a) {
  %known = add nsw i32 %a, 3
  %marked = call i32 @smelt.check.add.i32.i32.i32(i32 %known, i32 %a, i32 3)
  ret i32 %marked
}
define void @__smelt_entry(ptr %context) {
  %a = load i32, ptr %context
  %b = load i32, ptr %context
  %f = load float, ptr %context
  %sum = add nsw i32 %a, %b
  %wrapped = add i32 %sum, %b
  %shifted = shl i32 %wrapped, %b
  %quotient = sdiv i32 %shifted, %b
  %half = sdiv i32 %quotient, 2
  %whole = call i32 @llvm.fptosi.sat.i32.f32(float %f)
  %before = load i32, ptr %context
  %told = call i32 @smelt.check.add.i32.i32.i32(i32 %before, i32 1, i32 2)
  store i32 %half, ptr %context
  store i32 %whole, ptr %context
  store i32 %told, ptr %context
  ret void
}
