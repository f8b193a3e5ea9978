; All threads first wait for the previous kernel on the stream, on GPUs that can start a kernel before it has ended. Code with a time-out
; does not.
; run: ptx ptx-target+ptx-previous
; expect: entry:
; expect: call void asm sideeffect "griddepcontrol.wait;", "~{memory}"()
; expect: load i32
; run: ptx ptx-target+ptx-previous polled=1
; absent: griddepcontrol
define void @__smelt_entry(ptr %context) {
entry:
  %a = load i32, ptr %context
  %b = add i32 %a, 1
  store i32 %b, ptr %context
  ret void
}
