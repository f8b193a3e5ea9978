; A loop of many blocks with products on tensor cores: the assembler is told how many threadgroups are to fit.
; run: ptx ptx-target+ptx-registers threads=128
; expect: !{ptr @__smelt_entry, !"minctasm", i32 4}
; run: ptx ptx-target+ptx-registers threads=512
; absent: minctasm
define void @__smelt_entry(ptr %context) {
entry:
  br label %b0

b0:
  %round = phi i32 [ 0, %entry ], [ %next, %b24 ]
  %v0 = load volatile i32, ptr %context
  %c0 = icmp eq i32 %v0, 0
  br i1 %c0, label %t0, label %b1

t0:
  store volatile i32 %v0, ptr %context
  br label %b1

b1:
  %v1 = load volatile i32, ptr %context
  %c1 = icmp eq i32 %v1, 1
  br i1 %c1, label %t1, label %b2

t1:
  store volatile i32 %v1, ptr %context
  br label %b2

b2:
  %v2 = load volatile i32, ptr %context
  %c2 = icmp eq i32 %v2, 2
  br i1 %c2, label %t2, label %b3

t2:
  store volatile i32 %v2, ptr %context
  br label %b3

b3:
  %v3 = load volatile i32, ptr %context
  %c3 = icmp eq i32 %v3, 3
  br i1 %c3, label %t3, label %b4

t3:
  store volatile i32 %v3, ptr %context
  br label %b4

b4:
  %v4 = load volatile i32, ptr %context
  %c4 = icmp eq i32 %v4, 4
  br i1 %c4, label %t4, label %b5

t4:
  store volatile i32 %v4, ptr %context
  br label %b5

b5:
  %v5 = load volatile i32, ptr %context
  %c5 = icmp eq i32 %v5, 5
  br i1 %c5, label %t5, label %b6

t5:
  store volatile i32 %v5, ptr %context
  br label %b6

b6:
  %v6 = load volatile i32, ptr %context
  %c6 = icmp eq i32 %v6, 6
  br i1 %c6, label %t6, label %b7

t6:
  store volatile i32 %v6, ptr %context
  br label %b7

b7:
  %v7 = load volatile i32, ptr %context
  %c7 = icmp eq i32 %v7, 7
  br i1 %c7, label %t7, label %b8

t7:
  store volatile i32 %v7, ptr %context
  br label %b8

b8:
  %v8 = load volatile i32, ptr %context
  %c8 = icmp eq i32 %v8, 8
  br i1 %c8, label %t8, label %b9

t8:
  store volatile i32 %v8, ptr %context
  br label %b9

b9:
  %v9 = load volatile i32, ptr %context
  %c9 = icmp eq i32 %v9, 9
  br i1 %c9, label %t9, label %b10

t9:
  store volatile i32 %v9, ptr %context
  br label %b10

b10:
  %v10 = load volatile i32, ptr %context
  %c10 = icmp eq i32 %v10, 10
  br i1 %c10, label %t10, label %b11

t10:
  store volatile i32 %v10, ptr %context
  br label %b11

b11:
  %v11 = load volatile i32, ptr %context
  %c11 = icmp eq i32 %v11, 11
  br i1 %c11, label %t11, label %b12

t11:
  store volatile i32 %v11, ptr %context
  br label %b12

b12:
  %v12 = load volatile i32, ptr %context
  %c12 = icmp eq i32 %v12, 12
  br i1 %c12, label %t12, label %b13

t12:
  store volatile i32 %v12, ptr %context
  br label %b13

b13:
  %v13 = load volatile i32, ptr %context
  %c13 = icmp eq i32 %v13, 13
  br i1 %c13, label %t13, label %b14

t13:
  store volatile i32 %v13, ptr %context
  br label %b14

b14:
  %v14 = load volatile i32, ptr %context
  %c14 = icmp eq i32 %v14, 14
  br i1 %c14, label %t14, label %b15

t14:
  store volatile i32 %v14, ptr %context
  br label %b15

b15:
  %v15 = load volatile i32, ptr %context
  %c15 = icmp eq i32 %v15, 15
  br i1 %c15, label %t15, label %b16

t15:
  store volatile i32 %v15, ptr %context
  br label %b16

b16:
  %v16 = load volatile i32, ptr %context
  %c16 = icmp eq i32 %v16, 16
  br i1 %c16, label %t16, label %b17

t16:
  store volatile i32 %v16, ptr %context
  br label %b17

b17:
  %v17 = load volatile i32, ptr %context
  %c17 = icmp eq i32 %v17, 17
  br i1 %c17, label %t17, label %b18

t17:
  store volatile i32 %v17, ptr %context
  br label %b18

b18:
  %v18 = load volatile i32, ptr %context
  %c18 = icmp eq i32 %v18, 18
  br i1 %c18, label %t18, label %b19

t18:
  store volatile i32 %v18, ptr %context
  br label %b19

b19:
  %v19 = load volatile i32, ptr %context
  %c19 = icmp eq i32 %v19, 19
  br i1 %c19, label %t19, label %b20

t19:
  store volatile i32 %v19, ptr %context
  br label %b20

b20:
  %v20 = load volatile i32, ptr %context
  %c20 = icmp eq i32 %v20, 20
  br i1 %c20, label %t20, label %b21

t20:
  store volatile i32 %v20, ptr %context
  br label %b21

b21:
  %v21 = load volatile i32, ptr %context
  %c21 = icmp eq i32 %v21, 21
  br i1 %c21, label %t21, label %b22

t21:
  store volatile i32 %v21, ptr %context
  br label %b22

b22:
  %v22 = load volatile i32, ptr %context
  %c22 = icmp eq i32 %v22, 22
  br i1 %c22, label %t22, label %b23

t22:
  store volatile i32 %v22, ptr %context
  br label %b23

b23:
  %v23 = load volatile i32, ptr %context
  %c23 = icmp eq i32 %v23, 23
  br i1 %c23, label %t23, label %b24

t23:
  store volatile i32 %v23, ptr %context
  br label %b24

b24:
  %sums = call { float, float, float, float } asm "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {$0,$1,$2,$3}, {$4,$5}, {$6}, {$7,$8,$9,$10};", "=f,=f,=f,=f,r,r,r,f,f,f,f"(i32 1, i32 2, i32 3, float 0.0, float 0.0, float 0.0, float 0.0)
  %sum = extractvalue { float, float, float, float } %sums, 0
  store volatile float %sum, ptr %context
  %next = add i32 %round, 1
  %more = icmp ult i32 %next, 9
  br i1 %more, label %b0, label %end

end:
  ret void
}
