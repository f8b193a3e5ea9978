; A loop that loads in each round and rarely does more: four loads at once, though its rounds are long.
; run: ptx ptx-target+ptx-unroll-rounds
; expect: load float, ptr addrspace(1)
; expect: load float, ptr addrspace(1)
; expect: load float, ptr addrspace(1)
; expect: load float, ptr addrspace(1)
; expect: br i1 %{…}, label %{…}, label %round
define void @__smelt_entry(ptr addrspace(1) %a, i32 %n) {
entry:
  %some = icmp sgt i32 %n, 0
  br i1 %some, label %round, label %end
round:
  %i = phi i32 [ 0, %entry ], [ %next, %join ]
  %v0 = phi float [ 0.0, %entry ], [ %w0, %join ]
  %v1 = phi float [ 0.0, %entry ], [ %w1, %join ]
  %v2 = phi float [ 0.0, %entry ], [ %w2, %join ]
  %v3 = phi float [ 0.0, %entry ], [ %w3, %join ]
  %v4 = phi float [ 0.0, %entry ], [ %w4, %join ]
  %v5 = phi float [ 0.0, %entry ], [ %w5, %join ]
  %v6 = phi float [ 0.0, %entry ], [ %w6, %join ]
  %place = getelementptr inbounds float, ptr addrspace(1) %a, i32 %i
  %x = load float, ptr addrspace(1) %place
  %more = fcmp ogt float %x, %v6
  br i1 %more, label %better, label %join
better:
  %c0 = fcmp ogt float %x, %v0
  %u0 = select i1 %c0, float %x, float %v0
  %d0 = select i1 %c0, float %v0, float %x
  %c1 = fcmp ogt float %d0, %v1
  %u1 = select i1 %c1, float %d0, float %v1
  %d1 = select i1 %c1, float %v1, float %d0
  %c2 = fcmp ogt float %d1, %v2
  %u2 = select i1 %c2, float %d1, float %v2
  %d2 = select i1 %c2, float %v2, float %d1
  %c3 = fcmp ogt float %d2, %v3
  %u3 = select i1 %c3, float %d2, float %v3
  %d3 = select i1 %c3, float %v3, float %d2
  %c4 = fcmp ogt float %d3, %v4
  %u4 = select i1 %c4, float %d3, float %v4
  %d4 = select i1 %c4, float %v4, float %d3
  %c5 = fcmp ogt float %d4, %v5
  %u5 = select i1 %c5, float %d4, float %v5
  %d5 = select i1 %c5, float %v5, float %d4
  %c6 = fcmp ogt float %d5, %v6
  %u6 = select i1 %c6, float %d5, float %v6
  br label %join
join:
  %w0 = phi float [ %v0, %round ], [ %u0, %better ]
  %w1 = phi float [ %v1, %round ], [ %u1, %better ]
  %w2 = phi float [ %v2, %round ], [ %u2, %better ]
  %w3 = phi float [ %v3, %round ], [ %u3, %better ]
  %w4 = phi float [ %v4, %round ], [ %u4, %better ]
  %w5 = phi float [ %v5, %round ], [ %u5, %better ]
  %w6 = phi float [ %v6, %round ], [ %u6, %better ]
  %next = add nuw nsw i32 %i, 1
  %again = icmp slt i32 %next, %n
  br i1 %again, label %round, label %end
end:
  %r0 = phi float [ 0.0, %entry ], [ %w0, %join ]
  %r6 = phi float [ 0.0, %entry ], [ %w6, %join ]
  store float %r0, ptr addrspace(1) %a
  store float %r6, ptr addrspace(1) %a
  ret void
}
