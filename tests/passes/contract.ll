; Within a statement, a product of vectors that is added or subtracted is fused: the temporary of the product is memory named ref.tmp,
; filled part by part or whole. A variable's product, the product of a library's function, and one that is also used elsewhere are not.
; run: all contract
; expect: {fused:…} = call float @llvm.fma.f32(float {x:…}, float %s, float {a:…})
; expect: store float {fused:…}, ptr
; expect: {minus:…} = fneg float
; expect: {rest:…} = call float @llvm.fma.f32(float {minus:…}, float %s, float {b:…})
; expect: insertvalue %vec poison, float {rest:…}, 0
; expect: call ptr @_ZN5metal8__vectorpLIfLi2EEE_named(ptr %f, ptr %named)
; expect: define void @_ZN5metal4ownEv
; expect: call ptr @_ZN5metal8__vectorpLIfLi2EEE_named(ptr %f, ptr %ref.tmp)
%vec = type { float, float }

declare %vec @_ZN5metal8__vectormlIfLi2EEE_scalar(ptr, float)
declare %vec @_ZN5metal8__vectormiIfLi2EEE_vector(ptr, ptr)
declare ptr @_ZN5metal8__vectorpLIfLi2EEE_named(ptr, ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define void @__smelt_entry(ptr %context) {
  %d = getelementptr i8, ptr %context, i64 8
  %f = getelementptr i8, ptr %context, i64 16
  %s = load float, ptr %context
  %ref.tmp = alloca %vec, align 8
  %product = call %vec @_ZN5metal8__vectormlIfLi2EEE_scalar(ptr %d, float %s)
  %at.0 = getelementptr inbounds %vec, ptr %ref.tmp, i32 0, i32 0
  %part.0 = extractvalue %vec %product, 0
  store float %part.0, ptr %at.0
  %at.1 = getelementptr inbounds %vec, ptr %ref.tmp, i32 0, i32 1
  %part.1 = extractvalue %vec %product, 1
  store float %part.1, ptr %at.1
  %sum = call ptr @_ZN5metal8__vectorpLIfLi2EEE_named(ptr %f, ptr %ref.tmp)
  %ref.tmp2 = alloca %vec, align 8
  %coerce = alloca %vec, align 8
  %second = call %vec @_ZN5metal8__vectormlIfLi2EEE_scalar(ptr %d, float %s)
  store %vec %second, ptr %coerce
  call void @llvm.memcpy.p0.p0.i64(ptr %ref.tmp2, ptr %coerce, i64 8, i1 false)
  %difference = call %vec @_ZN5metal8__vectormiIfLi2EEE_vector(ptr %f, ptr %ref.tmp2)
  store %vec %difference, ptr %context
  %named = alloca %vec, align 8
  %third = call %vec @_ZN5metal8__vectormlIfLi2EEE_scalar(ptr %d, float %s)
  %coerce2 = alloca %vec, align 8
  store %vec %third, ptr %coerce2
  call void @llvm.memcpy.p0.p0.i64(ptr %named, ptr %coerce2, i64 8, i1 false)
  %named.sum = call ptr @_ZN5metal8__vectorpLIfLi2EEE_named(ptr %f, ptr %named)
  call void @_ZN5metal4ownEv(ptr %context)
  ret void
}

define void @_ZN5metal4ownEv(ptr %f) {
  %ref.tmp = alloca %vec, align 8
  %coerce = alloca %vec, align 8
  %product = call %vec @_ZN5metal8__vectormlIfLi2EEE_scalar(ptr %f, float 2.0)
  store %vec %product, ptr %coerce
  call void @llvm.memcpy.p0.p0.i64(ptr %ref.tmp, ptr %coerce, i64 8, i1 false)
  %sum = call ptr @_ZN5metal8__vectorpLIfLi2EEE_named(ptr %f, ptr %ref.tmp)
  ret void
}
