; A condition chooses between a test and one with the opposite branches. One branch is left, and values that depend on the way are chosen.
; run: ptx ptx-choose
; expect: entry:
; expect: %{less:…} = icmp slt i32 %a, %b
; expect: %{more:…} = icmp sgt i32 %a, %b
; expect: %{way:…} = select i1 %up, i32 1, i32 2
; expect: %{not:…} = xor i1 %{more:…}, true
; expect: %{both:…} = select i1 %up, i1 %{less:…}, i1 %{not:…}
; expect: br i1 %{both:…}, label %swap, label %end
; expect: swap:
; expect: phi i32 [ %{way:…}, %entry ]
; absent: ascending:
; absent: descending:
define void @__smelt_entry(ptr %p, i32 %a, i32 %b, i1 %up) {
entry:
  br i1 %up, label %ascending, label %descending
ascending:
  %less = icmp slt i32 %a, %b
  br i1 %less, label %swap, label %end
descending:
  %more = icmp sgt i32 %a, %b
  br i1 %more, label %end, label %swap
swap:
  %way = phi i32 [ 1, %ascending ], [ 2, %descending ]
  store i32 %way, ptr %p
  br label %end
end:
  ret void
}
