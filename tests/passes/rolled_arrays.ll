; clang's loops over the elements of arrays of objects that it initialises are unrolled, unless there are many elements.
; run: all rolled
; expect: br i1 %few.done, label %more, label %few, !llvm.loop
; absent: br i1 %many.done, label %end, label %many, !llvm.loop
%object = type { [2 x float] }
define void @__smelt_entry(ptr %context) {
entry:
  %a = alloca [32 x %object]
  %b = alloca [66 x %object]
  %few.start = getelementptr inbounds %object, ptr %a, i64 1
  %few.end = getelementptr inbounds %object, ptr %a, i64 32
  br label %few
few:
  %few.at = phi ptr [ %few.start, %entry ], [ %few.next, %few ]
  store volatile i64 0, ptr %few.at
  %few.next = getelementptr inbounds %object, ptr %few.at, i64 1
  %few.done = icmp eq ptr %few.next, %few.end
  br i1 %few.done, label %more, label %few
more:
  %many.end = getelementptr inbounds %object, ptr %b, i64 66
  br label %many
many:
  %many.at = phi ptr [ %b, %more ], [ %many.next, %many ]
  store volatile i64 0, ptr %many.at
  %many.next = getelementptr inbounds %object, ptr %many.at, i64 1
  %many.done = icmp eq ptr %many.next, %many.end
  br i1 %many.done, label %end, label %many
end:
  ret void
}
