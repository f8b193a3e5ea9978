; The address of the first of two rows, from which words around unaligned bytes are loaded, is hidden: the other row's is that plus the
; distance, which does not change in the loop. An address that is not the same in other rounds alone stays as it is. The address of the
; words of a row stays hidden.
; run: ptx ptx-target+ptx-counters
; expect: {first:…} = getelementptr i8, ptr addrspace(1) %a, i64 {at:…}
; expect: {hidden:…} = call ptr addrspace(1) asm "mov.b64 $0, $1;", "=l,l"(ptr addrspace(1) {first:…})
; expect: {part:…} = getelementptr i8, ptr addrspace(1) {hidden:…}, i64 %part
; expect: {number:…} = ptrtoint ptr addrspace(1) {part:…} to i64
; expect: call i64 asm "mov.b64 $0, $1;", "=l,l"(i64 {number:…})
; expect: {second:…} = getelementptr i8, ptr addrspace(1) {hidden:…}, i64 %distance
; expect: getelementptr i8, ptr addrspace(1) {second:…}, i64 %part
; absent: asm "mov.b64 $0, $1;", "=l,l"(ptr addrspace(1) %other
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

define void @__smelt_entry(ptr nocapture readonly %context) {
  %a.at = getelementptr inbounds i8, ptr %context, i64 56
  %a = load ptr addrspace(1), ptr %a.at, align 8
  %distance.at = getelementptr inbounds i8, ptr %context, i64 80
  %distance = load i64, ptr %distance.at, align 8
  %part.at = getelementptr inbounds i8, ptr %context, i64 88
  %part = load i64, ptr %part.at, align 8
  br label %round
round:
  %i = phi i64 [ 0, %0 ], [ %next, %round ]
  %sum = phi i32 [ 0, %0 ], [ %sum.next, %round ]
  %at = mul i64 %i, 17
  %first = getelementptr i8, ptr addrspace(1) %a, i64 %at
  %first.part = getelementptr i8, ptr addrspace(1) %first, i64 %part
  %first.number = ptrtoint ptr addrspace(1) %first.part to i64
  %first.hidden = call i64 asm "mov.b64 $0, $1;", "=l,l"(i64 %first.number), !smelt.words !0
  %first.even = and i64 %first.hidden, -4
  %first.word = inttoptr i64 %first.even to ptr addrspace(1)
  %x = load i32, ptr addrspace(1) %first.word
  %second = getelementptr i8, ptr addrspace(1) %first, i64 %distance
  %second.part = getelementptr i8, ptr addrspace(1) %second, i64 %part
  %second.number = ptrtoint ptr addrspace(1) %second.part to i64
  %second.even = and i64 %second.number, -4
  %second.word = inttoptr i64 %second.even to ptr addrspace(1)
  %y = load i32, ptr addrspace(1) %second.word
  %other = getelementptr i8, ptr addrspace(1) %a, i64 %i
  %other.1 = getelementptr i8, ptr addrspace(1) %other, i64 %distance
  %other.2 = getelementptr i8, ptr addrspace(1) %other, i64 %part
  %b = load i8, ptr addrspace(1) %other.1
  %c = load i8, ptr addrspace(1) %other.2
  %d = add i8 %b, %c
  %e = zext i8 %d to i32
  %sum.1 = add i32 %sum, %x
  %sum.2 = add i32 %sum.1, %y
  %sum.next = xor i32 %sum.2, %e
  %next = add i64 %i, 16
  %more = icmp ult i64 %next, 4096
  br i1 %more, label %round, label %end
end:
  store i32 %sum.next, ptr addrspace(1) %a
  ret void
}

!0 = !{}
