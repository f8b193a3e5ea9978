; A kernel of few threadgroups lets the next one start after its first loads.
; run: ptx ptx-target+ptx-previous
; expect: call void asm sideeffect "griddepcontrol.wait;", "~{memory}"()
; expect: load float, ptr addrspace(1) %a
; expect: {at:…} = getelementptr inbounds i8, ptr %context, i64 36
; expect: {few:…} = load i32, ptr {at:…}
; expect: griddepcontrol.launch_dependents; }", "r,~{memory}"(i32 {few:…})
; expect: more:
; expect: load float, ptr addrspace(1) %b
target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

define void @__smelt_entry(ptr nocapture readonly %context) {
  %a.at = getelementptr inbounds i8, ptr %context, i64 56
  %a = load ptr addrspace(1), ptr %a.at, align 8
  %b = getelementptr inbounds i8, ptr addrspace(1) %a, i64 64
  %x = load float, ptr addrspace(1) %a
  %large = fcmp ogt float %x, 1.0
  br i1 %large, label %more, label %end
more:
  %y = load float, ptr addrspace(1) %b
  store float %y, ptr addrspace(1) %a
  br label %end
end:
  ret void
}
