; An element at a quotient and a remainder by the length of its array's rows is found without them. Not with another length, nor
; at those of different numbers, nor where only one of them is signed.
; run: simd whole-index
; expect: %{wide:…} = zext i32 %i to i64
; expect: %{plain:…} = getelementptr inbounds float, ptr %context, i64 %{wide:…}
; expect: store volatile float 1.0{…}, ptr %{plain:…}
; expect: %{signed:…} = sext i32 %i to i64
; expect: %{two:…} = getelementptr float, ptr %context, i64 %{signed:…}
; expect: store volatile float 2.0{…}, ptr %{two:…}
; expect: %{third:…} = getelementptr [4 x [3 x [8 x float]]], ptr %context, i64 0, i64 %j
; expect: %{three:…} = getelementptr float, ptr %{third:…}, i64 %j
; expect: store volatile float 3.0{…}, ptr %{three:…}
; expect: store volatile float 4.0{…}, ptr %other
; expect: store volatile float 5.0{…}, ptr %different
; expect: store volatile float 6.0{…}, ptr %mixed
define void @__smelt_entry(ptr %context) {
  %i = load i32, ptr %context
  %j = load i64, ptr %context
  %q = udiv i32 %i, 24
  %r = urem i32 %i, 24
  %q64 = zext i32 %q to i64
  %r64 = zext i32 %r to i64
  %one = getelementptr inbounds [9 x [24 x float]], ptr %context, i64 0, i64 %q64, i64 %r64
  store volatile float 1.0, ptr %one
  %sq = sdiv i32 %i, 24
  %product = mul i32 %sq, -24
  %sr = add i32 %product, %i
  %sq64 = sext i32 %sq to i64
  %sr64 = sext i32 %sr to i64
  %two = getelementptr [24 x float], ptr %context, i64 %sq64, i64 %sr64
  store volatile float 2.0, ptr %two
  %shifted = lshr i64 %j, 3
  %low = and i64 %j, 7
  %three = getelementptr [4 x [3 x [8 x float]]], ptr %context, i64 0, i64 %j, i64 %shifted, i64 %low
  store volatile float 3.0, ptr %three
  %other = getelementptr [9 x [25 x float]], ptr %context, i64 0, i64 %q64, i64 %r64
  store volatile float 4.0, ptr %other
  %j32 = trunc i64 %j to i32
  %rj = urem i32 %j32, 24
  %rj64 = zext i32 %rj to i64
  %different = getelementptr [9 x [24 x float]], ptr %context, i64 0, i64 %q64, i64 %rj64
  store volatile float 5.0, ptr %different
  %mixed = getelementptr [9 x [24 x float]], ptr %context, i64 0, i64 %sq64, i64 %r64
  store volatile float 6.0, ptr %mixed
  ret void
}
