; Behind an early end, too, values differ where lanes that parted meet again, and behind a loop that they left in different rounds:
; branches on these are not marked, although each way's value is the same in all lanes.
; run: ptx ptx-target+ptx-lower+ptx-uniform threads=64
; expect: br i1 %of.ways
; expect: br i1 %of.rounds
declare i32 @__smelt_thread_index()
declare i32 @llvm.nvvm.vote.ballot.sync(i32, i1)

define void @__smelt_entry(ptr %context) {
entry:
  %thread = call i32 @__smelt_thread_index()
  %off = icmp ugt i32 %thread, 60
  br i1 %off, label %end, label %on

on:
  %odd = trunc i32 %thread to i1
  %vote = call i32 @llvm.nvvm.vote.ballot.sync(i32 -1, i1 %odd)
  br i1 %odd, label %left, label %right

left:
  store i32 1, ptr addrspace(1) null
  br label %join

right:
  store i32 2, ptr addrspace(1) null
  br label %join

join:
  %value = phi i32 [ 7, %left ], [ %vote, %right ]
  %of.ways = icmp eq i32 %value, 7
  br i1 %of.ways, label %store, label %loop

store:
  store i32 3, ptr addrspace(1) null
  br label %loop

loop:
  %round = phi i32 [ 0, %join ], [ 0, %store ], [ %next, %loop ]
  %next = add i32 %round, 1
  %stays = icmp ult i32 %next, %thread
  br i1 %stays, label %loop, label %behind

behind:
  %of.rounds = icmp ugt i32 %next, 9
  br i1 %of.rounds, label %last, label %end

last:
  store i32 4, ptr addrspace(1) null
  br label %end

end:
  ret void
}
