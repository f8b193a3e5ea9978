; A loop over a range that each thread loads counts with 32 bits, if a branch before it has compared the range's ends. One over a range
; that all threads share is as it was, and so is one that goes on past the end.
; run: simd simd-counters
; expect: %{k:…} = phi i32 [ %first, %entry ], [ %{next:…}, %rounds ]
; expect: %{wide:…} = sext i32 %{k:…} to i64
; expect: getelementptr float, ptr %x, i64 %{wide:…}
; expect: %{next:…} = add nsw i32 %{k:…}, 1
; expect: icmp eq i32 %{next:…}, %last
; expect: %shared = phi i64
; expect: %unguarded = phi i64
; expect: %past = phi i64
define void @__smelt_entry(ptr %context) {
entry:
  %me = call i32 @__smelt_thread_position(i32 0)
  %x = call ptr @__smelt_buffer_address(i32 0)
  %offsets = call ptr @__smelt_buffer_address(i32 1)
  %at = zext i32 %me to i64
  %range = getelementptr i32, ptr %offsets, i64 %at
  %first = load i32, ptr %range
  %after = getelementptr i8, ptr %range, i64 4
  %last = load i32, ptr %after
  %start = sext i32 %first to i64
  %end = sext i32 %last to i64
  %some = icmp slt i32 %first, %last
  br i1 %some, label %rounds, label %more
rounds:
  %k = phi i64 [ %start, %entry ], [ %next, %rounds ]
  %element = getelementptr float, ptr %x, i64 %k
  store float 1.0, ptr %element
  %next = add nsw i64 %k, 1
  %ends = icmp eq i64 %next, %end
  br i1 %ends, label %more, label %rounds
more:
  %begin = load i32, ptr %offsets
  %bound = load i32, ptr %x
  %from = sext i32 %begin to i64
  %to = sext i32 %bound to i64
  %any = icmp slt i32 %begin, %bound
  br i1 %any, label %again, label %unknown
again:
  %shared = phi i64 [ %from, %more ], [ %shared.next, %again ]
  %cell = getelementptr float, ptr %x, i64 %shared
  store float 2.0, ptr %cell
  %shared.next = add nsw i64 %shared, 1
  %stops = icmp eq i64 %shared.next, %to
  br i1 %stops, label %unknown, label %again
unknown:
  br label %loop
loop:
  %unguarded = phi i64 [ %start, %unknown ], [ %unguarded.next, %loop ]
  %place = getelementptr float, ptr %x, i64 %unguarded
  store float 3.0, ptr %place
  %unguarded.next = add nsw i64 %unguarded, 1
  %done = icmp eq i64 %unguarded.next, %end
  br i1 %done, label %others, label %loop
others:
  br i1 %some, label %beyond, label %return
beyond:
  %past = phi i64 [ %start, %others ], [ %past.next, %beyond ]
  %spot = getelementptr float, ptr %x, i64 %past
  %value = load float, ptr %spot
  %past.next = add nsw i64 %past, 1
  %at.end = icmp eq i64 %past.next, %end
  %weight = select i1 %at.end, float 4.0, float 5.0
  store float %weight, ptr %spot
  %zero = fcmp oeq float %value, 0.0
  br i1 %zero, label %return, label %beyond
return:
  ret void
}
declare i32 @__smelt_thread_position(i32)
declare ptr @__smelt_buffer_address(i32)
