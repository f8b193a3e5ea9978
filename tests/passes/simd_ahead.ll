; A round computes the next round's reduction before it uses its own; the last one computes its own again. A loop that
; stores, and one in which little depends on the reduction, stay.
; run: simd simd-ahead
; expect: %{from:…} = getelementptr float, ptr %p, i64 0
; expect: %{first:…} = load float, ptr %{from:…}
; expect: %{reduced:…} = fadd float %{first:…}, 1.000000e+00
; expect: %{now:…} = phi float [ %{reduced:…}, %edge ], [ %{ahead:…}, %loop ]
; expect: %{i:…} = phi i64 [ 0, %edge ], [ %{next:…}, %loop ]
; expect: %{next:…} = add i64 %{i:…}, 1
; expect: %{goes_on:…} = icmp ult i64 %{next:…}, 100
; expect: %{at:…} = select i1 %{goes_on:…}, i64 %{next:…}, i64 %{i:…}
; expect: %{place:…} = getelementptr float, ptr %p, i64 %{at:…}
; expect: %{later:…} = load float, ptr %{place:…}
; expect: %{ahead:…} = fadd float %{later:…}, 1.000000e+00
; expect: fmul float %{now:…}, %{now:…}
; expect: storing:
; expect: %s.reduced = fadd float %s.loaded, 1.000000e+00
; expect: %s.1 = fmul float %s.reduced, %s.reduced
; expect: short:
; expect: %t.reduced = fadd float %t.loaded, 1.000000e+00
; expect: %t.sum = fadd float %t.before, %t.reduced
define void @__smelt_entry(ptr %p) {
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %loop ]
  %before = phi float [ 0.0, %0 ], [ %16, %loop ]
  %address = getelementptr float, ptr %p, i64 %i
  %loaded = load float, ptr %address
  %reduced = fadd float %loaded, 1.0, !smelt.reduction !0
  %1 = fmul float %reduced, %reduced
  %2 = fmul float %1, %1
  %3 = fmul float %2, %2
  %4 = fmul float %3, %3
  %5 = fmul float %4, %4
  %6 = fmul float %5, %5
  %7 = fmul float %6, %6
  %8 = fmul float %7, %7
  %9 = fmul float %8, %8
  %10 = fmul float %9, %9
  %11 = fmul float %10, %10
  %12 = fmul float %11, %11
  %13 = fmul float %12, %12
  %14 = fmul float %13, %13
  %15 = fmul float %14, %14
  %16 = fadd float %before, %15
  %next = add i64 %i, 1
  %goes_on = icmp ult i64 %next, 100
  br i1 %goes_on, label %loop, label %storing
storing:
  %s.i = phi i64 [ 0, %loop ], [ %s.next, %storing ]
  %s.address = getelementptr float, ptr %p, i64 %s.i
  %s.loaded = load float, ptr %s.address
  %s.reduced = fadd float %s.loaded, 1.0, !smelt.reduction !0
  %s.1 = fmul float %s.reduced, %s.reduced
  %s.2 = fmul float %s.1, %s.1
  %s.3 = fmul float %s.2, %s.2
  %s.4 = fmul float %s.3, %s.3
  %s.5 = fmul float %s.4, %s.4
  %s.6 = fmul float %s.5, %s.5
  %s.7 = fmul float %s.6, %s.6
  %s.8 = fmul float %s.7, %s.7
  %s.9 = fmul float %s.8, %s.8
  %s.10 = fmul float %s.9, %s.9
  %s.11 = fmul float %s.10, %s.10
  %s.12 = fmul float %s.11, %s.11
  %s.13 = fmul float %s.12, %s.12
  %s.14 = fmul float %s.13, %s.13
  %s.15 = fmul float %s.14, %s.14
  %s.16 = fmul float %s.15, %s.15
  store float %s.16, ptr %s.address
  %s.next = add i64 %s.i, 1
  %s.goes_on = icmp ult i64 %s.next, 100
  br i1 %s.goes_on, label %storing, label %short
short:
  %t.i = phi i64 [ 0, %storing ], [ %t.next, %short ]
  %t.before = phi float [ 0.0, %storing ], [ %t.sum, %short ]
  %t.address = getelementptr float, ptr %p, i64 %t.i
  %t.loaded = load float, ptr %t.address
  %t.reduced = fadd float %t.loaded, 1.0, !smelt.reduction !0
  %t.sum = fadd float %t.before, %t.reduced
  %t.next = add i64 %t.i, 1
  %t.goes_on = icmp ult i64 %t.next, 100
  br i1 %t.goes_on, label %short, label %end
end:
  store float %t.sum, ptr %p
  ret void
}
!0 = !{}
