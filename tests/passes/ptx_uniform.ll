; The condition of a branch that all lanes take alike passes through an instruction that the text names: one of the simdgroup's
; number, of a vote of all lanes, or of the launch's arguments. Not one of the thread's number, of a vote of some lanes, or of what
; memory holds.
; run: ptx ptx-target+ptx-lower+ptx-uniform threads=64
; expect: call i1 asm "mov.pred $0, $1; // uniform", "=b,b"(i1 %of.simdgroup)
; expect: call i1 asm "mov.pred $0, $1; // uniform", "=b,b"(i1 %of.vote)
; expect: br i1 %of.thread
; expect: br i1 %of.some
; expect: br i1 %of.memory
declare i32 @__smelt_simdgroup()
declare i32 @__smelt_thread_index()
declare i32 @llvm.nvvm.vote.ballot.sync(i32, i1)
declare void @llvm.nvvm.bar.warp.sync(i32)

define void @__smelt_entry(ptr %context) {
entry:
  %simdgroup = call i32 @__smelt_simdgroup()
  %of.simdgroup = icmp eq i32 %simdgroup, 1
  br i1 %of.simdgroup, label %a, label %b

a:
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  br label %b

b:
  %thread = call i32 @__smelt_thread_index()
  %odd = trunc i32 %thread to i1
  %vote = call i32 @llvm.nvvm.vote.ballot.sync(i32 -1, i1 %odd)
  %of.vote = icmp eq i32 %vote, 5
  br i1 %of.vote, label %c, label %d

c:
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  br label %d

d:
  %of.thread = icmp ult i32 %thread, 40
  br i1 %of.thread, label %e, label %f

e:
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  br label %f

f:
  %mask = add i32 %thread, 1
  %some = call i32 @llvm.nvvm.vote.ballot.sync(i32 %mask, i1 %odd)
  %of.some = icmp eq i32 %some, 5
  br i1 %of.some, label %g, label %h

g:
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  br label %h

h:
  %number = load i32, ptr addrspace(1) null
  %of.memory = icmp eq i32 %number, 5
  br i1 %of.memory, label %i, label %j

i:
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  br label %j

j:
  ret void
}
