; A maximum that begins with a number never becomes NaN, so nothing asks whether it is; one that begins with an
; element may, and is asked apart.
; run: simd simd-maxima
; expect: %best = select i1 %less, float %element, float %top
; expect: %lowest = select i1 %more, float %element, float %low
; expect: %{more:…} = select i1 %below, float %element, float %any
; expect: %other = select i1 %unknown, float %element, float %{more:…}
; absent: or i1 %below
; absent: fcmp uno float %top
; absent: fcmp uno float %low
define void @__smelt_entry(ptr %context) {
entry:
  %first = load float, ptr %context
  br label %loop
loop:
  %top = phi float [ 0xFFF0000000000000, %entry ], [ %best, %loop ]
  %low = phi float [ 1.0, %entry ], [ %lowest, %loop ]
  %any = phi float [ %first, %entry ], [ %other, %loop ]
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %place = getelementptr float, ptr %context, i64 %i
  %element = load float, ptr %place
  %less = fcmp olt float %top, %element
  %nan = fcmp uno float %top, 0.0
  %choose = or i1 %nan, %less
  %best = select i1 %choose, float %element, float %top
  %more = fcmp ogt float %low, %element
  %none = fcmp uno float %low, %low
  %take = or i1 %more, %none
  %lowest = select i1 %take, float %element, float %low
  %below = fcmp olt float %any, %element
  %unknown = fcmp uno float %any, 0.0
  %either = or i1 %below, %unknown
  %other = select i1 %either, float %element, float %any
  %next = add i64 %i, 1
  %again = icmp ult i64 %next, 100
  br i1 %again, label %loop, label %end
end:
  store float %best, ptr %context
  store float %lowest, ptr %context
  store float %other, ptr %context
  ret void
}
