; Past a GPU's budget, long functions on integers whose loops end stay functions; those that compute with floats do not.
; The inner loop of @triangle starts from the outer loop's counter, and may end early. That of @passes starts past
; its limit from the outer loop's sixth round on. The loops of @square end after a hundred million rounds.
; run: ptx ptx-target+simplified
; expect: define internal i32 @triangle(i32 %x) #0
; expect: define internal i32 @passes(i32 %x) #1
; expect: define internal i32 @square(i32 %x) #1
; expect: define internal i32 @floating(i32 %x) #1
; expect: define internal i32 @middle(i32 %x) #0
; expect: define internal i32 @top(i32 %x) #0
; expect: attributes #0 = { noinline
; expect: attributes #1 = { alwaysinline
define internal i32 @big(i32 %x) #0 {
  %x0 = add i32 %x, 1
  %m0 = mul i32 %x0, %x0
  %x1 = add i32 %m0, 8
  %m1 = mul i32 %x1, %x1
  %x2 = add i32 %m1, 15
  %m2 = mul i32 %x2, %x2
  %x3 = add i32 %m2, 22
  %m3 = mul i32 %x3, %x3
  %x4 = add i32 %m3, 29
  %m4 = mul i32 %x4, %x4
  %x5 = add i32 %m4, 36
  %m5 = mul i32 %x5, %x5
  %x6 = add i32 %m5, 43
  %m6 = mul i32 %x6, %x6
  %x7 = add i32 %m6, 50
  %m7 = mul i32 %x7, %x7
  %x8 = add i32 %m7, 57
  %m8 = mul i32 %x8, %x8
  %x9 = add i32 %m8, 64
  %m9 = mul i32 %x9, %x9
  %x10 = add i32 %m9, 71
  %m10 = mul i32 %x10, %x10
  %x11 = add i32 %m10, 78
  %m11 = mul i32 %x11, %x11
  %x12 = add i32 %m11, 85
  %m12 = mul i32 %x12, %x12
  %x13 = add i32 %m12, 92
  %m13 = mul i32 %x13, %x13
  %x14 = add i32 %m13, 99
  %m14 = mul i32 %x14, %x14
  %x15 = add i32 %m14, 106
  %m15 = mul i32 %x15, %x15
  %x16 = add i32 %m15, 113
  %m16 = mul i32 %x16, %x16
  %x17 = add i32 %m16, 120
  %m17 = mul i32 %x17, %x17
  %x18 = add i32 %m17, 127
  %m18 = mul i32 %x18, %x18
  %x19 = add i32 %m18, 134
  %m19 = mul i32 %x19, %x19
  %x20 = add i32 %m19, 141
  %m20 = mul i32 %x20, %x20
  %x21 = add i32 %m20, 148
  %m21 = mul i32 %x21, %x21
  %x22 = add i32 %m21, 155
  %m22 = mul i32 %x22, %x22
  %x23 = add i32 %m22, 162
  %m23 = mul i32 %x23, %x23
  %x24 = add i32 %m23, 169
  %m24 = mul i32 %x24, %x24
  %x25 = add i32 %m24, 176
  %m25 = mul i32 %x25, %x25
  %x26 = add i32 %m25, 183
  %m26 = mul i32 %x26, %x26
  %x27 = add i32 %m26, 190
  %m27 = mul i32 %x27, %x27
  %x28 = add i32 %m27, 197
  %m28 = mul i32 %x28, %x28
  %x29 = add i32 %m28, 204
  %m29 = mul i32 %x29, %x29
  %x30 = add i32 %m29, 211
  %m30 = mul i32 %x30, %x30
  %x31 = add i32 %m30, 218
  %m31 = mul i32 %x31, %x31
  %x32 = add i32 %m31, 225
  %m32 = mul i32 %x32, %x32
  %x33 = add i32 %m32, 232
  %m33 = mul i32 %x33, %x33
  %x34 = add i32 %m33, 239
  %m34 = mul i32 %x34, %x34
  %x35 = add i32 %m34, 246
  %m35 = mul i32 %x35, %x35
  %x36 = add i32 %m35, 253
  %m36 = mul i32 %x36, %x36
  %x37 = add i32 %m36, 260
  %m37 = mul i32 %x37, %x37
  %x38 = add i32 %m37, 267
  %m38 = mul i32 %x38, %x38
  %x39 = add i32 %m38, 274
  %m39 = mul i32 %x39, %x39
  %x40 = add i32 %m39, 281
  %m40 = mul i32 %x40, %x40
  ret i32 %m40
}
define internal i32 @triangle(i32 %x) #0 {
entry:
  %begin = call i32 @big(i32 %x)
  br label %outer
outer:
  %i = phi i32 [ 0, %entry ], [ %i.next, %outer.end ]
  %s = phi i32 [ %begin, %entry ], [ %t, %outer.end ]
  %first = add i32 %i, 8
  br label %inner
inner:
  %j = phi i32 [ %first, %outer ], [ %j.next, %inner ]
  %before = phi i32 [ %s, %outer ], [ %t, %inner ]
  %t = call i32 @big(i32 %before)
  %j.next = add i32 %j, 1
  %carry = icmp ugt i32 %t, 77
  %more = icmp ne i32 %j.next, 16
  %goes.on = select i1 %more, i1 %carry, i1 false
  br i1 %goes.on, label %inner, label %outer.end
outer.end:
  %i.next = add i32 %i, 1
  %last = icmp eq i32 %i.next, 8
  br i1 %last, label %end, label %outer
end:
  ret i32 %t
}
define internal i32 @passes(i32 %x) #0 {
entry:
  %begin = call i32 @big(i32 %x)
  br label %outer
outer:
  %i = phi i32 [ 0, %entry ], [ %i.next, %outer.end ]
  %s = phi i32 [ %begin, %entry ], [ %t, %outer.end ]
  %first = add i32 %i, 8
  br label %inner
inner:
  %j = phi i32 [ %first, %outer ], [ %j.next, %inner ]
  %before = phi i32 [ %s, %outer ], [ %t, %inner ]
  %t = call i32 @big(i32 %before)
  %j.next = add i32 %j, 1
  %more = icmp ne i32 %j.next, 13
  br i1 %more, label %inner, label %outer.end
outer.end:
  %i.next = add i32 %i, 1
  %last = icmp eq i32 %i.next, 8
  br i1 %last, label %end, label %outer
end:
  ret i32 %t
}
define internal i32 @square(i32 %x) #0 {
entry:
  %begin = call i32 @big(i32 %x)
  br label %outer
outer:
  %i = phi i32 [ 0, %entry ], [ %i.next, %outer.end ]
  %s = phi i32 [ %begin, %entry ], [ %t, %outer.end ]
  br label %inner
inner:
  %j = phi i32 [ 0, %outer ], [ %j.next, %inner ]
  %before = phi i32 [ %s, %outer ], [ %t, %inner ]
  %t = call i32 @big(i32 %before)
  %j.next = add i32 %j, 1
  %more = icmp ult i32 %j.next, 10000
  br i1 %more, label %inner, label %outer.end
outer.end:
  %i.next = add i32 %i, 1
  %last = icmp ult i32 %i.next, 10000
  br i1 %last, label %outer, label %end
end:
  ret i32 %t
}
define internal i32 @floating(i32 %x) #0 {
  %c0 = call i32 @big(i32 %x)
  %c1 = call i32 @big(i32 %c0)
  %f = sitofp i32 %c1 to float
  %g = fmul float %f, 3.0
  %r = fptosi float %g to i32
  ret i32 %r
}
define internal i32 @middle(i32 %x) #0 {
  %c0 = call i32 @big(i32 %x)
  %c1 = call i32 @big(i32 %c0)
  %c2 = call i32 @big(i32 %c1)
  %c3 = call i32 @big(i32 %c2)
  %c4 = call i32 @big(i32 %c3)
  %c5 = call i32 @big(i32 %c4)
  %c6 = call i32 @big(i32 %c5)
  %c7 = call i32 @big(i32 %c6)
  %c8 = call i32 @big(i32 %c7)
  %c9 = call i32 @big(i32 %c8)
  %c10 = call i32 @big(i32 %c9)
  %c11 = call i32 @big(i32 %c10)
  %c12 = call i32 @big(i32 %c11)
  %c13 = call i32 @big(i32 %c12)
  %c14 = call i32 @big(i32 %c13)
  %c15 = call i32 @big(i32 %c14)
  ret i32 %c15
}
define internal i32 @top(i32 %x) #0 {
  %c0 = call i32 @middle(i32 %x)
  %c1 = call i32 @middle(i32 %c0)
  %c2 = call i32 @middle(i32 %c1)
  %c3 = call i32 @middle(i32 %c2)
  %c4 = call i32 @middle(i32 %c3)
  %c5 = call i32 @middle(i32 %c4)
  %c6 = call i32 @middle(i32 %c5)
  %c7 = call i32 @middle(i32 %c6)
  %c8 = call i32 @middle(i32 %c7)
  %c9 = call i32 @middle(i32 %c8)
  %c10 = call i32 @middle(i32 %c9)
  %c11 = call i32 @middle(i32 %c10)
  %c12 = call i32 @middle(i32 %c11)
  %c13 = call i32 @middle(i32 %c12)
  %c14 = call i32 @middle(i32 %c13)
  %c15 = call i32 @middle(i32 %c14)
  ret i32 %c15
}
define void @__smelt_entry(ptr %context) {
  %given = load i32, ptr %context
  %a0 = call i32 @top(i32 %given)
  %a1 = call i32 @top(i32 %a0)
  %a2 = call i32 @top(i32 %a1)
  %a3 = call i32 @top(i32 %a2)
  %b = call i32 @triangle(i32 %a3)
  %b1 = call i32 @passes(i32 %b)
  %b2 = call i32 @square(i32 %b1)
  %c = call i32 @floating(i32 %b2)
  store i32 %c, ptr %context
  ret void
}
attributes #0 = { alwaysinline }
