; With AVX2, masks that pass between blocks or are combined are vectors of words, and their users test the signs. A comparison next to
; its only user stays as it is, and so do masks for other widths of registers.
; run: simd simd-mask-words cpu=x86-64-v3
; expect: %near = icmp slt <8 x i32>
; expect: select <8 x i1> %near
; expect: %{first:…} = sext <8 x i1> %first to <8 x i32>
; expect: more:
; expect: %{phi:…} = phi <8 x i32> [ %{first:…}, %entry ], [ %{both:…}, %more ]
; expect: %{second:…} = sext <8 x i1> %second to <8 x i32>
; expect: %{both:…} = and <8 x i32> %{phi:…}, %{second:…}
; expect: %{any:…} = icmp slt <8 x i32> %{both:…}, zeroinitializer
; expect: bitcast <8 x i1> %{any:…} to i8
; absent: phi <8 x i1>
; absent: and <8 x i1>
; run: simd simd-mask-words cpu=x86-64-v4
; run: simd simd-mask-words cpu=x86-64
; expect: phi <8 x i1>
; expect: and <8 x i1>
; absent: sext
define void @__smelt_entry(ptr %context) {
entry:
  %x = load <8 x i32>, ptr %context
  %near = icmp slt <8 x i32> %x, <i32 7, i32 7, i32 7, i32 7, i32 7, i32 7, i32 7, i32 7>
  %chosen = select <8 x i1> %near, <8 x i32> %x, <8 x i32> zeroinitializer
  store <8 x i32> %chosen, ptr %context
  %first = icmp sgt <8 x i32> %x, zeroinitializer
  br label %more
more:
  %mask = phi <8 x i1> [ %first, %entry ], [ %both, %more ]
  %y = load volatile <8 x i32>, ptr %context
  %second = icmp eq <8 x i32> %x, %y
  %both = and <8 x i1> %mask, %second
  %bits = bitcast <8 x i1> %both to i8
  %any = icmp ne i8 %bits, 0
  br i1 %any, label %more, label %done
done:
  ret void
}
