; A loop over the dimensions of an array, which divides by their sizes, is unrolled in versions for two, three and four dimensions.
; run: ptx ptx-target+ptx-dimensions
; expect: switch i32 %{…}, label %entry
; expect: i32 2, label
; expect: i32 3, label
; expect: i32 4, label
; expect: phi i32
; expect: udiv i32
; expect: store i32
; expect: urem i32 %{…}
; expect: udiv i32 %{…}
; expect: urem i32 %{…}
; expect: store i32
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

define void @__smelt_entry(ptr nocapture readonly %context) {
entry:
  %o = load ptr addrspace(1), ptr %context, align 8, !invariant.load !0
  %n.at = getelementptr inbounds i8, ptr %context, i64 8
  %n = load i32, ptr %n.at, align 4, !invariant.load !0
  %index.at = getelementptr inbounds i8, ptr %context, i64 16
  %index = load i32, ptr %index.at, align 4, !invariant.load !0
  %none = icmp eq i32 %n, 0
  br i1 %none, label %end, label %round
round:
  %d = phi i32 [ %next, %round ], [ 0, %entry ]
  %left = phi i32 [ %quotient, %round ], [ %index, %entry ]
  %place = phi i32 [ %sum, %round ], [ 0, %entry ]
  %wide = zext i32 %d to i64
  %at = getelementptr inbounds i8, ptr %context, i64 32
  %size.at = getelementptr inbounds i32, ptr %at, i64 %wide
  %size = load i32, ptr %size.at, align 4, !invariant.load !0
  %quotient = udiv i32 %left, %size
  %rest = urem i32 %left, %size
  %sum = add i32 %place, %rest
  %next = add nuw i32 %d, 1
  %last = icmp eq i32 %next, %n
  br i1 %last, label %end, label %round
end:
  %result = phi i32 [ 0, %entry ], [ %sum, %round ]
  store i32 %result, ptr addrspace(1) %o, align 4
  ret void
}

!0 = !{}
