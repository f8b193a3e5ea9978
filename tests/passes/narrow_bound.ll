; An index of 32 bits that a loop widens is compared with a bound of 64 bits in its own bits, unless the bound is out of their reach.
; Comparisons share the bound in these bits.
; Other numbers, signed comparisons and constant bounds stay.
; run: simd narrow-bound
; expect: %{low:…} = trunc i64 %bound to i32
; expect: %{far:…} = icmp ugt i64 %bound, 4294967295
; expect: %{below:…} = icmp ult i32 %next, %{low:…}
; expect: %{more:…} = or i1 %{far:…}, %{below:…}
; expect: br i1 %{more:…}, label %body, label %then
; expect: %{near:…} = icmp ule i64 %bound, 4294967295
; expect: %{above:…} = icmp uge i32 %again, %{low:…}
; expect: %{left:…} = and i1 %{near:…}, %{above:…}
; expect: br i1 %{left:…}, label %end, label %then
; expect: icmp slt i64 %wide3, %bound
define void @__smelt_entry(ptr %context) {
entry:
  %bound = load volatile i64, ptr %context
  %step = load volatile i32, ptr %context
  br label %body
body:
  %i = phi i32 [ 0, %entry ], [ %next, %body ]
  %index = phi i64 [ 0, %entry ], [ %wide, %body ]
  %p = getelementptr float, ptr %context, i64 %index
  store volatile float 1.0, ptr %p
  %next = add i32 %i, %step
  %wide = zext i32 %next to i64
  %more = icmp ult i64 %wide, %bound
  br i1 %more, label %body, label %then
then:
  %j = phi i32 [ 0, %body ], [ %again, %then ]
  %index2 = phi i64 [ 0, %body ], [ %wide2, %then ]
  %q = getelementptr float, ptr %context, i64 %index2
  store volatile float 2.0, ptr %q
  %again = add i32 %j, %step
  %wide2 = zext i32 %again to i64
  %left = icmp ule i64 %bound, %wide2
  br i1 %left, label %end, label %then
end:
  %k = phi i32 [ 0, %then ], [ %last, %end ]
  %index3 = phi i64 [ 0, %then ], [ %wide3, %end ]
  %r = getelementptr float, ptr %context, i64 %index3
  store volatile float 3.0, ptr %r
  %last = add i32 %k, %step
  %wide3 = zext i32 %last to i64
  %stay = icmp slt i64 %wide3, %bound
  br i1 %stay, label %end, label %out
out:
  ret void
}
