; A constant that decides some lanes of a result alone is hidden from LLVM's code generator. Choices between
; constants by constant masks are made before it.
; run: simd simd-settle
; expect: @{place:…} = private externally_initialized constant <4 x i32> <i32 0, i32 7, i32 7, i32 7>
; expect: %{hidden:…} = load <4 x i32>, ptr @{place:…}
; expect: %some = and <4 x i32> %x, %{hidden:…}
; expect: %all = and <4 x i32> %x, zeroinitializer
; expect: store <4 x i8> <i8 31, i8 32, i8 33, i8 34>, ptr %context
; expect: %other = select <4 x i1> <i1 true, i1 false, i1 false, i1 false>, <4 x i8> %y, <4 x i8> <i8 undef, i8 32, i8 33, i8 34>
define void @__smelt_entry(ptr %context) {
  %x = load <4 x i32>, ptr %context
  %some = and <4 x i32> %x, <i32 0, i32 7, i32 7, i32 7>
  store <4 x i32> %some, ptr %context
  %all = and <4 x i32> %x, zeroinitializer
  store <4 x i32> %all, ptr %context
  %first = select <4 x i1> <i1 true, i1 false, i1 false, i1 false>, <4 x i8> <i8 31, i8 undef, i8 undef, i8 undef>, <4 x i8> undef
  %chosen = select <4 x i1> <i1 true, i1 false, i1 false, i1 false>, <4 x i8> %first, <4 x i8> <i8 undef, i8 32, i8 33, i8 34>
  store <4 x i8> %chosen, ptr %context
  %y = load <4 x i8>, ptr %context
  %other = select <4 x i1> <i1 true, i1 false, i1 false, i1 false>, <4 x i8> %y, <4 x i8> <i8 undef, i8 32, i8 33, i8 34>
  store <4 x i8> %other, ptr %context
  ret void
}
