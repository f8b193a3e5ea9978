; The entry becomes a kernel for as many threads as a block may have.
; run: ptx ptx-target+ptx-retarget+ptx-code threads=64
; expect: define {…}void @__smelt_entry(ptr byval([{…} x i8]) align 16 %context)
; expect: !nvvm.annotations = !{!{…}, !{…}}
; expect: = !{ptr @__smelt_entry, !"kernel", i32 1}
; expect: = !{ptr @__smelt_entry, !"maxntidx", i32 64}
define void @__smelt_entry(ptr %context) {
  ret void
}
