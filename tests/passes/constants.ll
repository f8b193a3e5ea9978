; A function constant that was given a value has it; one that was not, and is used at the end, is an error.
; run: all constants constant=-3
; expect: @"smelt_constant_0 scale" = internal constant i32 -3
; expect: @"smelt_constant_1 unset" = external constant i32
; expect: store i1 true, ptr %context
; expect: constant scale: index 0, required 0
; expect: constant unset: index 1, required 0
; run: all constants+constants-used constant=-3
; fails: function constant 1 ('unset') has no value, and the kernel uses it
@"smelt_constant_0 scale" = external constant i32
@"smelt_constant_1 unset" = external constant i32
@smelt_constant_type_0_1 = constant i32 263
@smelt_constant_type_1_2 = constant i32 263
declare i1 @__smelt_constant_defined(ptr)

define void @__smelt_entry(ptr %context) {
  %scale = load i32, ptr @"smelt_constant_0 scale"
  store i32 %scale, ptr %context
  %defined = call i1 @__smelt_constant_defined(ptr @"smelt_constant_0 scale")
  store i1 %defined, ptr %context
  %unset = load i32, ptr @"smelt_constant_1 unset"
  store i32 %unset, ptr %context
  ret void
}
