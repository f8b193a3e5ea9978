; The table of parameters goes into the image; function constants say which are absent, and in the end the code.
; run: all bindings
; expect: @__smelt_bindings = internal
; expect: binding 0: kind 1, index 0
; expect: binding 1: kind 1, index 1
; expect: binding 2: kind 2, index 0
; absent: binding 3
; absent: llvm.compiler.used
; run: all bindings+guarded-bindings
; expect: binding 0: kind 1, index 0
; expect: binding 1: kind 4, index 1
; expect: binding 2: kind 2, index 0
; run: all bindings+used-bindings
; expect: binding 0: kind 1, index 0
; expect: binding 1: kind 4, index 1
; expect: binding 2: kind 4, index 0
%binding = type { i32, i32, i32, i32, i32, i32 }
@__smelt_bindings = constant [4 x %binding] [%binding { i32 1, i32 0, i32 4, i32 4, i32 0, i32 0 }, %binding { i32 1, i32 1, i32 4, i32 4, i32 1, i32 0 }, %binding { i32 2, i32 0, i32 4, i32 4, i32 1, i32 0 }, %binding zeroinitializer]
@__smelt_guards = global [3 x i8] c"\01\00\01"
@llvm.compiler.used = appending global [1 x ptr] [ptr @__smelt_bindings]
declare ptr @__smelt_buffer_address(i32)

define void @__smelt_entry(ptr %context) {
  %a = call ptr @__smelt_buffer_address(i32 0)
  store i32 1, ptr %a
  ret void
}
