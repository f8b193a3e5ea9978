; What all ways to a block compute alike is computed there, without flags that may hold on one way alone.
; run: simd simd-merged
; expect: %loaded = phi i32 [ %l, %left ], [ %r, %right ]
; expect: = zext i32 %me to i64
; expect: store i32 %loaded
; absent: phi i64
define void @__smelt_entry(ptr %context) {
entry:
  %me = load i32, ptr %context
  %some = icmp ult i32 %me, 8
  br i1 %some, label %left, label %right
left:
  %a = zext nneg i32 %me to i64
  %from = getelementptr i32, ptr %context, i64 %a
  %l = load i32, ptr %from
  br label %join
right:
  %b = zext i32 %me to i64
  %other = getelementptr i32, ptr %context, i64 %b
  %r = load i32, ptr %other
  br label %join
join:
  %wide = phi i64 [ %a, %left ], [ %b, %right ]
  %loaded = phi i32 [ %l, %left ], [ %r, %right ]
  %place = getelementptr i32, ptr %context, i64 %wide
  store i32 %loaded, ptr %place
  ret void
}
