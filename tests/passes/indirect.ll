; A pointer is called only where it is one of the program's functions.
; run: scalar indirect
; run: simd indirect
; expect: %{same:…} = icmp eq ptr %function, @target
; expect: %{checked:…} = select i1 %{same:…}, ptr %function, ptr inttoptr (i64 1 to ptr)
; expect: call void %{checked:…}(i32 3)
@table = constant ptr @target

define internal void @target(i32 %x) {
  ret void
}

; run: ptx indirect
; expect: call void %function(i32 3)
define void @__smelt_entry(ptr %context) {
  %function = load ptr, ptr %context
  call void %function(i32 3)
  ret void
}
