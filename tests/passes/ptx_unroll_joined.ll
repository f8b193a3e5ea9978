; A ring of 16 numbers in a loop of 32 rounds, where LLVM has moved the counter's sum and an index to the ends of two paths: the sum is a
; computation of the counter again, and the index is constant once the loop is unrolled, as is the condition that chooses it.
; run: ptx ptx-unroll
; absent: alloca
; absent: br i1
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

define void @__smelt_entry(ptr %context) {
entry:
  %ring = alloca [16 x i32], align 4
  br label %round

round:
  %i = phi i32 [ 0, %entry ], [ %next, %meet ]
  %late = icmp ugt i32 %i, 15
  br i1 %late, label %again, label %first

first:
  %first.index = zext i32 %i to i64
  %first.next = add nuw nsw i32 %i, 1
  %first.place = getelementptr i32, ptr %context, i64 %first.index
  %number = load i32, ptr %first.place, align 4
  br label %meet

again:
  %again.next = add i32 %i, 1
  %low = and i32 %i, 15
  %again.index = zext i32 %low to i64
  %old.place = getelementptr [16 x i32], ptr %ring, i64 0, i64 %again.index
  %old = load i32, ptr %old.place, align 4
  %more = add i32 %old, %i
  br label %meet

meet:
  %next = phi i32 [ %first.next, %first ], [ %again.next, %again ]
  %index = phi i64 [ %first.index, %first ], [ %again.index, %again ]
  %value = phi i32 [ %number, %first ], [ %more, %again ]
  %place = getelementptr [16 x i32], ptr %ring, i64 0, i64 %index
  store i32 %value, ptr %place, align 4
  %done = icmp eq i32 %next, 32
  br i1 %done, label %end, label %round

end:
  %last.place = getelementptr [16 x i32], ptr %ring, i64 0, i64 3
  %last = load i32, ptr %last.place, align 4
  store i32 %last, ptr %context, align 4
  ret void
}
