; Initialisers of variables that are used are taken out of clang's table and, once inlined, evaluated.
; run: all initialisers-listed
; expect: define dso_local void @smelt_initialiser_0()
; absent: @smelt_initialiser_1
; absent: @unused
; absent: @llvm.global_ctors
; run: all initialisers-listed+initialisers-evaluated
; expect: @twice = {…} i32 14
; absent: store i32 %double
@"smelt_constant_0 scale" = internal constant i32 7
@twice = internal global i32 0
@unused = internal global i32 0
@llvm.global_ctors = appending global [2 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 65535, ptr @unneeded, ptr null }, { i32, ptr, ptr } { i32 65535, ptr @initialise, ptr null }]

define internal void @initialise() {
  %value = load i32, ptr @"smelt_constant_0 scale"
  %double = shl i32 %value, 1
  store i32 %double, ptr @twice
  ret void
}

define internal void @unneeded() {
  store i32 1, ptr @unused
  ret void
}

define void @__smelt_entry(ptr %context) {
  %value = load i32, ptr @twice
  store i32 %value, ptr %context
  ret void
}
