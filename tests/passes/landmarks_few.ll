; Two loops in a row need no marks.
; run: all landmarks
; expect: ret void
; absent: llvm.sideeffect
define void @__smelt_entry(ptr %context) {
entry:
  br label %loop0
loop0:
  %i0 = phi i32 [ 0, %entry ], [ %next0, %loop0 ]
  %s0 = phi i32 [ 0, %entry ], [ %sum0, %loop0 ]
  %size0 = load i32, ptr %context
  %sum0 = add i32 %s0, %i0
  %next0 = add i32 %i0, 1
  %more0 = icmp ult i32 %next0, %size0
  br i1 %more0, label %loop0, label %loop1
loop1:
  %i1 = phi i32 [ 0, %loop0 ], [ %next1, %loop1 ]
  %s1 = phi i32 [ %sum0, %loop0 ], [ %sum1, %loop1 ]
  %size1 = load i32, ptr %context
  %sum1 = add i32 %s1, %i1
  %next1 = add i32 %i1, 1
  %more1 = icmp ult i32 %next1, %size1
  br i1 %more1, label %loop1, label %end
end:
  store i32 %sum1, ptr %context
  ret void
}
