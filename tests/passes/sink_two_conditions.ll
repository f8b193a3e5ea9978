; Two loads whose values two selects take, the second by a condition that is not known before the first: they
; stay loads of every thread, and the pass ends.
; run: all sink
; expect: load float, ptr %p
; expect: select i1 %first, float %{a:…}, float %{b:…}
; expect: select i1 %second, float %{a:…}, float %{b:…}
; absent: freeze
define void @__smelt_entry(ptr %context) {
  %i = load i32, ptr %context
  %first = icmp ult i32 %i, 8
  %p = getelementptr float, ptr %context, i32 %i
  %q = getelementptr float, ptr %p, i32 4
  %a = load float, ptr %p
  %b = load float, ptr %q
  %x = select i1 %first, float %a, float %b
  %flag = load i32, ptr %p
  %second = icmp ult i32 %flag, 8
  %y = select i1 %second, float %a, float %b
  %sum = fadd float %x, %y
  store float %sum, ptr %context
  ret void
}
