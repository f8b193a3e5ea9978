; What depends on the launch alone is computed before a loop, though only some rounds need it.
; run: ptx ptx-target+bindings+ptx-inline+ptx-once inlined=1
; expect: fmul float
; expect: phi i32
; expect: fdiv float
%binding = type { i32, i32, i32, i32, i32, i32 }
@__smelt_bindings = constant [3 x %binding] [%binding { i32 1, i32 0, i32 4, i32 4, i32 0, i32 0 }, %binding { i32 1, i32 1, i32 4, i32 4, i32 1, i32 0 }, %binding zeroinitializer]
declare ptr @__smelt_buffer_address(i32)

define void @__smelt_entry(ptr %context) {
entry:
  %scale = call ptr @__smelt_buffer_address(i32 0)
  %out = call ptr @__smelt_buffer_address(i32 1)
  br label %round
round:
  %i = phi i32 [ 0, %entry ], [ %next, %last ]
  %sum = phi float [ 0.0, %entry ], [ %more, %last ]
  %place = getelementptr inbounds float, ptr %out, i32 %i
  %x = load float, ptr %place
  %wanted = fcmp ogt float %x, 0.0
  br i1 %wanted, label %some, label %last
some:
  %s = load float, ptr %scale
  %square = fmul float %s, %s
  %quotient = fdiv float %x, %square
  %added = fadd float %sum, %quotient
  br label %last
last:
  %more = phi float [ %sum, %round ], [ %added, %some ]
  %next = add nuw nsw i32 %i, 1
  %again = icmp ult i32 %next, 100
  br i1 %again, label %round, label %end
end:
  store float %more, ptr %out
  ret void
}
