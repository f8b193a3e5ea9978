; A constant that decides some lanes of a result alone is hidden from LLVM's code generator.
; run: simd simd-settle
; expect: @{place:…} = private externally_initialized constant <4 x i32> <i32 0, i32 7, i32 7, i32 7>
; expect: %{hidden:…} = load <4 x i32>, ptr @{place:…}
; expect: %some = and <4 x i32> %x, %{hidden:…}
; expect: %all = and <4 x i32> %x, zeroinitializer
define void @__smelt_entry(ptr %context) {
  %x = load <4 x i32>, ptr %context
  %some = and <4 x i32> %x, <i32 0, i32 7, i32 7, i32 7>
  store <4 x i32> %some, ptr %context
  %all = and <4 x i32> %x, zeroinitializer
  store <4 x i32> %all, ptr %context
  ret void
}
