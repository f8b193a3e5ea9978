; A load whose sum is compared and then thrown away by a logical or, which the optimiser makes of a comparison of a select.
; run: all sink
; expect: br i1 %{…}, label %{wanted:…}, label %{rest:…}
; expect: {wanted:…}:
; expect: %{value:…} = load float
; expect: {rest:…}:
; expect: %{chosen:…} = phi float [ %{value:…}, %{wanted:…} ], [ 0.0
; expect: fadd float %{chosen:…}, 2.0
define void @__smelt_entry(ptr %in, ptr %out, i32 %j) {
entry:
  %at = sext i32 %j to i64
  %address = getelementptr inbounds float, ptr %in, i64 %at
  %v = load float, ptr %address
  %outside = icmp ugt i32 %j, 16383
  %sum = fadd float %v, 2.0
  %less = fcmp ole float %sum, 1.0
  %more = select i1 %outside, i1 true, i1 %less
  br i1 %more, label %body, label %end
body:
  store i32 1, ptr %out
  br label %end
end:
  ret void
}
