; A loop that loads from one row, and code outside loops: the address of a run of words is not hidden from LLVM. What other passes hide
; stays hidden.
; run: ptx ptx-target+ptx-counters
; expect: {before:…} = ptrtoint ptr addrspace(1) %a to i64
; expect: and i64 {before:…}, -4
; expect: {number:…} = ptrtoint ptr addrspace(1) %row to i64
; expect: and i64 {number:…}, -4
; expect: call i64 asm "mov.b64 $0, $1;", "=l,l"(i64 %{…})
; absent: !smelt.words
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

define void @__smelt_entry(ptr nocapture readonly %context) {
  %a.at = getelementptr inbounds i8, ptr %context, i64 56
  %a = load ptr addrspace(1), ptr %a.at, align 8
  %before = ptrtoint ptr addrspace(1) %a to i64
  %before.hidden = call i64 asm "mov.b64 $0, $1;", "=l,l"(i64 %before), !smelt.words !0
  %before.even = and i64 %before.hidden, -4
  %before.word = inttoptr i64 %before.even to ptr addrspace(1)
  %x = load i32, ptr addrspace(1) %before.word
  br label %round
round:
  %i = phi i64 [ 0, %0 ], [ %next, %round ]
  %sum = phi i32 [ %x, %0 ], [ %sum.next, %round ]
  %at = mul i64 %i, 17
  %row = getelementptr i8, ptr addrspace(1) %a, i64 %at
  %number = ptrtoint ptr addrspace(1) %row to i64
  %hidden = call i64 asm "mov.b64 $0, $1;", "=l,l"(i64 %number), !smelt.words !0
  %even = and i64 %hidden, -4
  %word = inttoptr i64 %even to ptr addrspace(1)
  %y = load i32, ptr addrspace(1) %word
  %other = call i64 asm "mov.b64 $0, $1;", "=l,l"(i64 %number)
  %low = trunc i64 %other to i32
  %sum.1 = add i32 %sum, %y
  %sum.next = xor i32 %sum.1, %low
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 4096
  br i1 %more, label %round, label %end
end:
  store i32 %sum.next, ptr addrspace(1) %a
  ret void
}

!0 = !{}
