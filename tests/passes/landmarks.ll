; Among many loops in a row, every sixteenth has a mark before it, which ends LLVM's searches for the write that a load sees.
; landmarks-removed deletes all marks.
; run: all landmarks
; expect: loop15.preheader:
; expect: call void @llvm.sideeffect()
; expect: br label %loop15
; expect: loop31.preheader:
; expect: call void @llvm.sideeffect()
; expect: br label %loop31
; expect: loop47.preheader:
; expect: call void @llvm.sideeffect()
; expect: br label %loop47
; run: all landmarks+landmarks-removed
; expect: loop47.preheader:
; expect: br label %loop47
; absent: call void
define void @__smelt_entry(ptr %context) {
entry:
  br label %loop0
loop0:
  %i0 = phi i32 [ 0, %entry ], [ %next0, %loop0 ]
  %s0 = phi i32 [ 0, %entry ], [ %sum0, %loop0 ]
  %size0 = load i32, ptr %context
  %sum0 = add i32 %s0, %i0
  %next0 = add i32 %i0, 1
  %more0 = icmp ult i32 %next0, %size0
  br i1 %more0, label %loop0, label %loop1
loop1:
  %i1 = phi i32 [ 0, %loop0 ], [ %next1, %loop1 ]
  %s1 = phi i32 [ %sum0, %loop0 ], [ %sum1, %loop1 ]
  %size1 = load i32, ptr %context
  %sum1 = add i32 %s1, %i1
  %next1 = add i32 %i1, 1
  %more1 = icmp ult i32 %next1, %size1
  br i1 %more1, label %loop1, label %loop2
loop2:
  %i2 = phi i32 [ 0, %loop1 ], [ %next2, %loop2 ]
  %s2 = phi i32 [ %sum1, %loop1 ], [ %sum2, %loop2 ]
  %size2 = load i32, ptr %context
  %sum2 = add i32 %s2, %i2
  %next2 = add i32 %i2, 1
  %more2 = icmp ult i32 %next2, %size2
  br i1 %more2, label %loop2, label %loop3
loop3:
  %i3 = phi i32 [ 0, %loop2 ], [ %next3, %loop3 ]
  %s3 = phi i32 [ %sum2, %loop2 ], [ %sum3, %loop3 ]
  %size3 = load i32, ptr %context
  %sum3 = add i32 %s3, %i3
  %next3 = add i32 %i3, 1
  %more3 = icmp ult i32 %next3, %size3
  br i1 %more3, label %loop3, label %loop4
loop4:
  %i4 = phi i32 [ 0, %loop3 ], [ %next4, %loop4 ]
  %s4 = phi i32 [ %sum3, %loop3 ], [ %sum4, %loop4 ]
  %size4 = load i32, ptr %context
  %sum4 = add i32 %s4, %i4
  %next4 = add i32 %i4, 1
  %more4 = icmp ult i32 %next4, %size4
  br i1 %more4, label %loop4, label %loop5
loop5:
  %i5 = phi i32 [ 0, %loop4 ], [ %next5, %loop5 ]
  %s5 = phi i32 [ %sum4, %loop4 ], [ %sum5, %loop5 ]
  %size5 = load i32, ptr %context
  %sum5 = add i32 %s5, %i5
  %next5 = add i32 %i5, 1
  %more5 = icmp ult i32 %next5, %size5
  br i1 %more5, label %loop5, label %loop6
loop6:
  %i6 = phi i32 [ 0, %loop5 ], [ %next6, %loop6 ]
  %s6 = phi i32 [ %sum5, %loop5 ], [ %sum6, %loop6 ]
  %size6 = load i32, ptr %context
  %sum6 = add i32 %s6, %i6
  %next6 = add i32 %i6, 1
  %more6 = icmp ult i32 %next6, %size6
  br i1 %more6, label %loop6, label %loop7
loop7:
  %i7 = phi i32 [ 0, %loop6 ], [ %next7, %loop7 ]
  %s7 = phi i32 [ %sum6, %loop6 ], [ %sum7, %loop7 ]
  %size7 = load i32, ptr %context
  %sum7 = add i32 %s7, %i7
  %next7 = add i32 %i7, 1
  %more7 = icmp ult i32 %next7, %size7
  br i1 %more7, label %loop7, label %loop8
loop8:
  %i8 = phi i32 [ 0, %loop7 ], [ %next8, %loop8 ]
  %s8 = phi i32 [ %sum7, %loop7 ], [ %sum8, %loop8 ]
  %size8 = load i32, ptr %context
  %sum8 = add i32 %s8, %i8
  %next8 = add i32 %i8, 1
  %more8 = icmp ult i32 %next8, %size8
  br i1 %more8, label %loop8, label %loop9
loop9:
  %i9 = phi i32 [ 0, %loop8 ], [ %next9, %loop9 ]
  %s9 = phi i32 [ %sum8, %loop8 ], [ %sum9, %loop9 ]
  %size9 = load i32, ptr %context
  %sum9 = add i32 %s9, %i9
  %next9 = add i32 %i9, 1
  %more9 = icmp ult i32 %next9, %size9
  br i1 %more9, label %loop9, label %loop10
loop10:
  %i10 = phi i32 [ 0, %loop9 ], [ %next10, %loop10 ]
  %s10 = phi i32 [ %sum9, %loop9 ], [ %sum10, %loop10 ]
  %size10 = load i32, ptr %context
  %sum10 = add i32 %s10, %i10
  %next10 = add i32 %i10, 1
  %more10 = icmp ult i32 %next10, %size10
  br i1 %more10, label %loop10, label %loop11
loop11:
  %i11 = phi i32 [ 0, %loop10 ], [ %next11, %loop11 ]
  %s11 = phi i32 [ %sum10, %loop10 ], [ %sum11, %loop11 ]
  %size11 = load i32, ptr %context
  %sum11 = add i32 %s11, %i11
  %next11 = add i32 %i11, 1
  %more11 = icmp ult i32 %next11, %size11
  br i1 %more11, label %loop11, label %loop12
loop12:
  %i12 = phi i32 [ 0, %loop11 ], [ %next12, %loop12 ]
  %s12 = phi i32 [ %sum11, %loop11 ], [ %sum12, %loop12 ]
  %size12 = load i32, ptr %context
  %sum12 = add i32 %s12, %i12
  %next12 = add i32 %i12, 1
  %more12 = icmp ult i32 %next12, %size12
  br i1 %more12, label %loop12, label %loop13
loop13:
  %i13 = phi i32 [ 0, %loop12 ], [ %next13, %loop13 ]
  %s13 = phi i32 [ %sum12, %loop12 ], [ %sum13, %loop13 ]
  %size13 = load i32, ptr %context
  %sum13 = add i32 %s13, %i13
  %next13 = add i32 %i13, 1
  %more13 = icmp ult i32 %next13, %size13
  br i1 %more13, label %loop13, label %loop14
loop14:
  %i14 = phi i32 [ 0, %loop13 ], [ %next14, %loop14 ]
  %s14 = phi i32 [ %sum13, %loop13 ], [ %sum14, %loop14 ]
  %size14 = load i32, ptr %context
  %sum14 = add i32 %s14, %i14
  %next14 = add i32 %i14, 1
  %more14 = icmp ult i32 %next14, %size14
  br i1 %more14, label %loop14, label %loop15
loop15:
  %i15 = phi i32 [ 0, %loop14 ], [ %next15, %loop15 ]
  %s15 = phi i32 [ %sum14, %loop14 ], [ %sum15, %loop15 ]
  %size15 = load i32, ptr %context
  %sum15 = add i32 %s15, %i15
  %next15 = add i32 %i15, 1
  %more15 = icmp ult i32 %next15, %size15
  br i1 %more15, label %loop15, label %loop16
loop16:
  %i16 = phi i32 [ 0, %loop15 ], [ %next16, %loop16 ]
  %s16 = phi i32 [ %sum15, %loop15 ], [ %sum16, %loop16 ]
  %size16 = load i32, ptr %context
  %sum16 = add i32 %s16, %i16
  %next16 = add i32 %i16, 1
  %more16 = icmp ult i32 %next16, %size16
  br i1 %more16, label %loop16, label %loop17
loop17:
  %i17 = phi i32 [ 0, %loop16 ], [ %next17, %loop17 ]
  %s17 = phi i32 [ %sum16, %loop16 ], [ %sum17, %loop17 ]
  %size17 = load i32, ptr %context
  %sum17 = add i32 %s17, %i17
  %next17 = add i32 %i17, 1
  %more17 = icmp ult i32 %next17, %size17
  br i1 %more17, label %loop17, label %loop18
loop18:
  %i18 = phi i32 [ 0, %loop17 ], [ %next18, %loop18 ]
  %s18 = phi i32 [ %sum17, %loop17 ], [ %sum18, %loop18 ]
  %size18 = load i32, ptr %context
  %sum18 = add i32 %s18, %i18
  %next18 = add i32 %i18, 1
  %more18 = icmp ult i32 %next18, %size18
  br i1 %more18, label %loop18, label %loop19
loop19:
  %i19 = phi i32 [ 0, %loop18 ], [ %next19, %loop19 ]
  %s19 = phi i32 [ %sum18, %loop18 ], [ %sum19, %loop19 ]
  %size19 = load i32, ptr %context
  %sum19 = add i32 %s19, %i19
  %next19 = add i32 %i19, 1
  %more19 = icmp ult i32 %next19, %size19
  br i1 %more19, label %loop19, label %loop20
loop20:
  %i20 = phi i32 [ 0, %loop19 ], [ %next20, %loop20 ]
  %s20 = phi i32 [ %sum19, %loop19 ], [ %sum20, %loop20 ]
  %size20 = load i32, ptr %context
  %sum20 = add i32 %s20, %i20
  %next20 = add i32 %i20, 1
  %more20 = icmp ult i32 %next20, %size20
  br i1 %more20, label %loop20, label %loop21
loop21:
  %i21 = phi i32 [ 0, %loop20 ], [ %next21, %loop21 ]
  %s21 = phi i32 [ %sum20, %loop20 ], [ %sum21, %loop21 ]
  %size21 = load i32, ptr %context
  %sum21 = add i32 %s21, %i21
  %next21 = add i32 %i21, 1
  %more21 = icmp ult i32 %next21, %size21
  br i1 %more21, label %loop21, label %loop22
loop22:
  %i22 = phi i32 [ 0, %loop21 ], [ %next22, %loop22 ]
  %s22 = phi i32 [ %sum21, %loop21 ], [ %sum22, %loop22 ]
  %size22 = load i32, ptr %context
  %sum22 = add i32 %s22, %i22
  %next22 = add i32 %i22, 1
  %more22 = icmp ult i32 %next22, %size22
  br i1 %more22, label %loop22, label %loop23
loop23:
  %i23 = phi i32 [ 0, %loop22 ], [ %next23, %loop23 ]
  %s23 = phi i32 [ %sum22, %loop22 ], [ %sum23, %loop23 ]
  %size23 = load i32, ptr %context
  %sum23 = add i32 %s23, %i23
  %next23 = add i32 %i23, 1
  %more23 = icmp ult i32 %next23, %size23
  br i1 %more23, label %loop23, label %loop24
loop24:
  %i24 = phi i32 [ 0, %loop23 ], [ %next24, %loop24 ]
  %s24 = phi i32 [ %sum23, %loop23 ], [ %sum24, %loop24 ]
  %size24 = load i32, ptr %context
  %sum24 = add i32 %s24, %i24
  %next24 = add i32 %i24, 1
  %more24 = icmp ult i32 %next24, %size24
  br i1 %more24, label %loop24, label %loop25
loop25:
  %i25 = phi i32 [ 0, %loop24 ], [ %next25, %loop25 ]
  %s25 = phi i32 [ %sum24, %loop24 ], [ %sum25, %loop25 ]
  %size25 = load i32, ptr %context
  %sum25 = add i32 %s25, %i25
  %next25 = add i32 %i25, 1
  %more25 = icmp ult i32 %next25, %size25
  br i1 %more25, label %loop25, label %loop26
loop26:
  %i26 = phi i32 [ 0, %loop25 ], [ %next26, %loop26 ]
  %s26 = phi i32 [ %sum25, %loop25 ], [ %sum26, %loop26 ]
  %size26 = load i32, ptr %context
  %sum26 = add i32 %s26, %i26
  %next26 = add i32 %i26, 1
  %more26 = icmp ult i32 %next26, %size26
  br i1 %more26, label %loop26, label %loop27
loop27:
  %i27 = phi i32 [ 0, %loop26 ], [ %next27, %loop27 ]
  %s27 = phi i32 [ %sum26, %loop26 ], [ %sum27, %loop27 ]
  %size27 = load i32, ptr %context
  %sum27 = add i32 %s27, %i27
  %next27 = add i32 %i27, 1
  %more27 = icmp ult i32 %next27, %size27
  br i1 %more27, label %loop27, label %loop28
loop28:
  %i28 = phi i32 [ 0, %loop27 ], [ %next28, %loop28 ]
  %s28 = phi i32 [ %sum27, %loop27 ], [ %sum28, %loop28 ]
  %size28 = load i32, ptr %context
  %sum28 = add i32 %s28, %i28
  %next28 = add i32 %i28, 1
  %more28 = icmp ult i32 %next28, %size28
  br i1 %more28, label %loop28, label %loop29
loop29:
  %i29 = phi i32 [ 0, %loop28 ], [ %next29, %loop29 ]
  %s29 = phi i32 [ %sum28, %loop28 ], [ %sum29, %loop29 ]
  %size29 = load i32, ptr %context
  %sum29 = add i32 %s29, %i29
  %next29 = add i32 %i29, 1
  %more29 = icmp ult i32 %next29, %size29
  br i1 %more29, label %loop29, label %loop30
loop30:
  %i30 = phi i32 [ 0, %loop29 ], [ %next30, %loop30 ]
  %s30 = phi i32 [ %sum29, %loop29 ], [ %sum30, %loop30 ]
  %size30 = load i32, ptr %context
  %sum30 = add i32 %s30, %i30
  %next30 = add i32 %i30, 1
  %more30 = icmp ult i32 %next30, %size30
  br i1 %more30, label %loop30, label %loop31
loop31:
  %i31 = phi i32 [ 0, %loop30 ], [ %next31, %loop31 ]
  %s31 = phi i32 [ %sum30, %loop30 ], [ %sum31, %loop31 ]
  %size31 = load i32, ptr %context
  %sum31 = add i32 %s31, %i31
  %next31 = add i32 %i31, 1
  %more31 = icmp ult i32 %next31, %size31
  br i1 %more31, label %loop31, label %loop32
loop32:
  %i32 = phi i32 [ 0, %loop31 ], [ %next32, %loop32 ]
  %s32 = phi i32 [ %sum31, %loop31 ], [ %sum32, %loop32 ]
  %size32 = load i32, ptr %context
  %sum32 = add i32 %s32, %i32
  %next32 = add i32 %i32, 1
  %more32 = icmp ult i32 %next32, %size32
  br i1 %more32, label %loop32, label %loop33
loop33:
  %i33 = phi i32 [ 0, %loop32 ], [ %next33, %loop33 ]
  %s33 = phi i32 [ %sum32, %loop32 ], [ %sum33, %loop33 ]
  %size33 = load i32, ptr %context
  %sum33 = add i32 %s33, %i33
  %next33 = add i32 %i33, 1
  %more33 = icmp ult i32 %next33, %size33
  br i1 %more33, label %loop33, label %loop34
loop34:
  %i34 = phi i32 [ 0, %loop33 ], [ %next34, %loop34 ]
  %s34 = phi i32 [ %sum33, %loop33 ], [ %sum34, %loop34 ]
  %size34 = load i32, ptr %context
  %sum34 = add i32 %s34, %i34
  %next34 = add i32 %i34, 1
  %more34 = icmp ult i32 %next34, %size34
  br i1 %more34, label %loop34, label %loop35
loop35:
  %i35 = phi i32 [ 0, %loop34 ], [ %next35, %loop35 ]
  %s35 = phi i32 [ %sum34, %loop34 ], [ %sum35, %loop35 ]
  %size35 = load i32, ptr %context
  %sum35 = add i32 %s35, %i35
  %next35 = add i32 %i35, 1
  %more35 = icmp ult i32 %next35, %size35
  br i1 %more35, label %loop35, label %loop36
loop36:
  %i36 = phi i32 [ 0, %loop35 ], [ %next36, %loop36 ]
  %s36 = phi i32 [ %sum35, %loop35 ], [ %sum36, %loop36 ]
  %size36 = load i32, ptr %context
  %sum36 = add i32 %s36, %i36
  %next36 = add i32 %i36, 1
  %more36 = icmp ult i32 %next36, %size36
  br i1 %more36, label %loop36, label %loop37
loop37:
  %i37 = phi i32 [ 0, %loop36 ], [ %next37, %loop37 ]
  %s37 = phi i32 [ %sum36, %loop36 ], [ %sum37, %loop37 ]
  %size37 = load i32, ptr %context
  %sum37 = add i32 %s37, %i37
  %next37 = add i32 %i37, 1
  %more37 = icmp ult i32 %next37, %size37
  br i1 %more37, label %loop37, label %loop38
loop38:
  %i38 = phi i32 [ 0, %loop37 ], [ %next38, %loop38 ]
  %s38 = phi i32 [ %sum37, %loop37 ], [ %sum38, %loop38 ]
  %size38 = load i32, ptr %context
  %sum38 = add i32 %s38, %i38
  %next38 = add i32 %i38, 1
  %more38 = icmp ult i32 %next38, %size38
  br i1 %more38, label %loop38, label %loop39
loop39:
  %i39 = phi i32 [ 0, %loop38 ], [ %next39, %loop39 ]
  %s39 = phi i32 [ %sum38, %loop38 ], [ %sum39, %loop39 ]
  %size39 = load i32, ptr %context
  %sum39 = add i32 %s39, %i39
  %next39 = add i32 %i39, 1
  %more39 = icmp ult i32 %next39, %size39
  br i1 %more39, label %loop39, label %loop40
loop40:
  %i40 = phi i32 [ 0, %loop39 ], [ %next40, %loop40 ]
  %s40 = phi i32 [ %sum39, %loop39 ], [ %sum40, %loop40 ]
  %size40 = load i32, ptr %context
  %sum40 = add i32 %s40, %i40
  %next40 = add i32 %i40, 1
  %more40 = icmp ult i32 %next40, %size40
  br i1 %more40, label %loop40, label %loop41
loop41:
  %i41 = phi i32 [ 0, %loop40 ], [ %next41, %loop41 ]
  %s41 = phi i32 [ %sum40, %loop40 ], [ %sum41, %loop41 ]
  %size41 = load i32, ptr %context
  %sum41 = add i32 %s41, %i41
  %next41 = add i32 %i41, 1
  %more41 = icmp ult i32 %next41, %size41
  br i1 %more41, label %loop41, label %loop42
loop42:
  %i42 = phi i32 [ 0, %loop41 ], [ %next42, %loop42 ]
  %s42 = phi i32 [ %sum41, %loop41 ], [ %sum42, %loop42 ]
  %size42 = load i32, ptr %context
  %sum42 = add i32 %s42, %i42
  %next42 = add i32 %i42, 1
  %more42 = icmp ult i32 %next42, %size42
  br i1 %more42, label %loop42, label %loop43
loop43:
  %i43 = phi i32 [ 0, %loop42 ], [ %next43, %loop43 ]
  %s43 = phi i32 [ %sum42, %loop42 ], [ %sum43, %loop43 ]
  %size43 = load i32, ptr %context
  %sum43 = add i32 %s43, %i43
  %next43 = add i32 %i43, 1
  %more43 = icmp ult i32 %next43, %size43
  br i1 %more43, label %loop43, label %loop44
loop44:
  %i44 = phi i32 [ 0, %loop43 ], [ %next44, %loop44 ]
  %s44 = phi i32 [ %sum43, %loop43 ], [ %sum44, %loop44 ]
  %size44 = load i32, ptr %context
  %sum44 = add i32 %s44, %i44
  %next44 = add i32 %i44, 1
  %more44 = icmp ult i32 %next44, %size44
  br i1 %more44, label %loop44, label %loop45
loop45:
  %i45 = phi i32 [ 0, %loop44 ], [ %next45, %loop45 ]
  %s45 = phi i32 [ %sum44, %loop44 ], [ %sum45, %loop45 ]
  %size45 = load i32, ptr %context
  %sum45 = add i32 %s45, %i45
  %next45 = add i32 %i45, 1
  %more45 = icmp ult i32 %next45, %size45
  br i1 %more45, label %loop45, label %loop46
loop46:
  %i46 = phi i32 [ 0, %loop45 ], [ %next46, %loop46 ]
  %s46 = phi i32 [ %sum45, %loop45 ], [ %sum46, %loop46 ]
  %size46 = load i32, ptr %context
  %sum46 = add i32 %s46, %i46
  %next46 = add i32 %i46, 1
  %more46 = icmp ult i32 %next46, %size46
  br i1 %more46, label %loop46, label %loop47
loop47:
  %i47 = phi i32 [ 0, %loop46 ], [ %next47, %loop47 ]
  %s47 = phi i32 [ %sum46, %loop46 ], [ %sum47, %loop47 ]
  %size47 = load i32, ptr %context
  %sum47 = add i32 %s47, %i47
  %next47 = add i32 %i47, 1
  %more47 = icmp ult i32 %next47, %size47
  br i1 %more47, label %loop47, label %loop48
loop48:
  %i48 = phi i32 [ 0, %loop47 ], [ %next48, %loop48 ]
  %s48 = phi i32 [ %sum47, %loop47 ], [ %sum48, %loop48 ]
  %size48 = load i32, ptr %context
  %sum48 = add i32 %s48, %i48
  %next48 = add i32 %i48, 1
  %more48 = icmp ult i32 %next48, %size48
  br i1 %more48, label %loop48, label %end
end:
  store i32 %sum48, ptr %context
  ret void
}
