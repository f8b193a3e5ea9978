; Both tests lead back to the block that chooses between them: its condition is a phi of that block, which a copy replaces.
; run: ptx ptx-choose
; expect: %{turn:…} = phi i1 [ %up, %entry ], [ %{way:…}, %round ]
; expect: %{way:…} = select i1 %{turn:…}, i1 false, i1 true
; expect: %{both:…} = select i1 %{turn:…}, i1 %{…}, i1 %{…}
; expect: br i1 %{both:…}, label %round, label %end
define void @__smelt_entry(ptr %p, i32 %a, i32 %b, i1 %up) {
entry:
  br label %round
round:
  %turn = phi i1 [ %up, %entry ], [ false, %ascending ], [ true, %descending ]
  %i = phi i32 [ 0, %entry ], [ %next, %ascending ], [ %next, %descending ]
  %next = add i32 %i, 1
  br i1 %turn, label %ascending, label %descending
ascending:
  %less = icmp slt i32 %next, %a
  br i1 %less, label %round, label %end
descending:
  %more = icmp slt i32 %next, %b
  br i1 %more, label %round, label %end
end:
  store i32 %next, ptr %p
  ret void
}
