; A load whose value is only selected is executed only where it is taken.
; run: all sink,sink-optimised
; expect: %{inside:…} = icmp ult i32 %i, 8
; expect: %{frozen:…} = freeze i1 %{inside:…}
; expect: br i1 %{frozen:…}, label %{wanted:…}, label %{rest:…}
; expect: {wanted:…}:
; expect: %{value:…} = load float, ptr %place
; expect: {rest:…}:
; expect: %{chosen:…} = phi float [ %{value:…}, %{wanted:…} ], [ 0.0
; expect: select i1 %{inside:…}, float %{chosen:…}, float 0.0
define void @__smelt_entry(ptr %context) {
  %i = load i32, ptr %context
  %place = getelementptr float, ptr %context, i32 %i
  %value = load float, ptr %place
  %inside = icmp ult i32 %i, 8
  %chosen = select i1 %inside, float %value, float 0.0
  store float %chosen, ptr %context
  ret void
}
