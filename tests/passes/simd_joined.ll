; Where paths meet that computed an address in a private array each, the address is computed anew from the index, or
; from a phi of the indexes: no phi of addresses hides which array it is.
; run: simd simd-prepare
; expect: %{index:…} = phi i64 [ %
; expect: %{joined:…} = getelementptr [64 x float], ptr %array, i64 0, i64 %{index:…}
; expect: %{same:…} = getelementptr [64 x float], ptr %array, i64 0, i64 %i
; expect: store float 1.000000e+00, ptr %{same:…}, align 4
; expect: store float 2.000000e+00, ptr %{joined:…}, align 4
; absent: phi ptr
define void @__smelt_entry(ptr %context) {
entry:
  %array = alloca [64 x float], align 16
  %i = load i64, ptr %context
  %j = add i64 %i, 1
  %k = mul i64 %i, %i
  %condition = icmp sgt i64 %i, 5
  br i1 %condition, label %here, label %there
here:
  %one = getelementptr [64 x float], ptr %array, i64 0, i64 %i
  %two = getelementptr [64 x float], ptr %array, i64 0, i64 %j
  store float 3.0, ptr %two, align 4
  br label %end
there:
  %other = getelementptr [64 x float], ptr %array, i64 0, i64 %i
  %third = getelementptr [64 x float], ptr %array, i64 0, i64 %k
  br label %end
end:
  %to = phi ptr [ %one, %here ], [ %other, %there ]
  %next = phi ptr [ %two, %here ], [ %third, %there ]
  store float 1.0, ptr %to, align 4
  store float 2.0, ptr %next, align 4
  %value = load float, ptr %array
  store float %value, ptr %context
  ret void
}
