; An access needs no test where the conditions that lead to its block say that it is inside.
; run: scalar bounds tested=1
; run: simd bounds tested=1
; expect: call void @__smelt_inside_0(ptr %at_most, i64 0, i64 4,
; expect: call void @__smelt_inside_0(ptr %earlier, i64 0, i64 4,
; absent: inside_0(ptr %below,
; absent: inside_0(ptr %not_above,
; absent: inside_0(ptr %both,
; absent: inside_0(ptr %least,
; absent: inside_0(ptr %bounded,
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
@a = internal global [8 x float] zeroinitializer
@o = internal global float 0.0
declare i32 @__smelt_lane()
declare i32 @llvm.umin.i32(i32, i32)
define void @__smelt_entry(ptr %context) {
entry:
  %lane = call i32 @__smelt_lane()
  %wide = zext i32 %lane to i64
  %x = load i32, ptr @o
  %xs = zext i32 %x to i64
  %is_below = icmp ult i32 %lane, 8
  br i1 %is_below, label %one, label %two
one:
  %below = getelementptr float, ptr @a, i64 %wide
  store float 1.0, ptr %below
  %bound_fits = icmp ult i32 %x, %lane
  br i1 %bound_fits, label %inner, label %two
inner:
  %bounded = getelementptr float, ptr @a, i64 %xs
  store float 1.0, ptr %bounded
  br label %two
two:
  %is_above = icmp sgt i32 %lane, 7
  br i1 %is_above, label %four, label %three
three:
  %not_above = getelementptr float, ptr @a, i64 %wide
  store float 2.0, ptr %not_above
  br label %four
four:
  %is_most = icmp ule i32 %lane, 8
  br i1 %is_most, label %five, label %six
five:
  %at_most = getelementptr float, ptr @a, i64 %wide
  store float 3.0, ptr %at_most
  br label %six
six:
  %positive = icmp sgt i32 %x, -1
  %small = icmp slt i32 %x, 8
  %is_both = select i1 %positive, i1 %small, i1 false
  br i1 %is_both, label %seven, label %eight
seven:
  %both = getelementptr float, ptr @a, i64 %xs
  store float 4.0, ptr %both
  br label %eight
eight:
  %min = call i32 @llvm.umin.i32(i32 %x, i32 7)
  %mins = zext i32 %min to i64
  %least = getelementptr float, ptr @a, i64 %mins
  store float 5.0, ptr %least
  br label %loop
loop:
  %previous = phi i32 [ 0, %eight ], [ %y, %again ]
  %y = load i32, ptr @o
  %y_fits = icmp ult i32 %y, 8
  br i1 %y_fits, label %fits, label %again
fits:
  %ps = zext i32 %previous to i64
  %earlier = getelementptr float, ptr @a, i64 %ps
  store float 6.0, ptr %earlier
  br label %again
again:
  %more = icmp ne i32 %y, 77
  br i1 %more, label %loop, label %end
end:
  ret void
}
