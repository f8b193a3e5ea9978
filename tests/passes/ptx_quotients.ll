; The quotient of a number of 32 bits by one of 64 is a division in 32 bits; of a product of which 32 bits are used, 32 are computed.
; run: ptx ptx-target+ptx-quotients
; expect: icmp ugt i64 %d, 4294967295
; expect: %{low:…} = trunc i64 %d to i32
; expect: %{by:…} = select i1 %{…}, i32 1, i32 %{low:…}
; expect: urem i32 %x, %{by:…}
; expect: udiv i32 %x, %{by:…}
; expect: mul i32
; expect: udiv i64 %wide, %d
; absent: mul i64
; absent: udiv i64 %from
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

define void @__smelt_entry(ptr nocapture readonly %context) {
entry:
  %o = load ptr addrspace(1), ptr %context, align 8, !invariant.load !0
  %x.at = getelementptr inbounds i8, ptr %context, i64 8
  %x = load i32, ptr %x.at, align 4, !invariant.load !0
  %d.at = getelementptr inbounds i8, ptr %context, i64 16
  %d = load i64, ptr %d.at, align 8, !invariant.load !0
  %s.at = getelementptr inbounds i8, ptr %context, i64 24
  %s = load i64, ptr %s.at, align 8, !invariant.load !0
  %wide.at = getelementptr inbounds i8, ptr %context, i64 32
  %wide = load i64, ptr %wide.at, align 8, !invariant.load !0
  %from = zext i32 %x to i64
  %rest = urem i64 %from, %d
  %quotient = udiv i64 %from, %d
  %product = mul i64 %rest, %s
  %index = trunc i64 %product to i32
  store i32 %index, ptr addrspace(1) %o, align 4
  %o.1 = getelementptr inbounds i8, ptr addrspace(1) %o, i64 8
  store i64 %quotient, ptr addrspace(1) %o.1, align 8
  %o.2 = getelementptr inbounds i8, ptr addrspace(1) %o, i64 16
  %other = udiv i64 %wide, %d
  store i64 %other, ptr addrspace(1) %o.2, align 8
  ret void
}

!0 = !{}
