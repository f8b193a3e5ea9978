; Before an instruction of a whole warp, its lanes end together if an access has failed a test. One check serves products in a
; row. After each further test of an access, there is another check. A loop that waits for a copy tests in each round.
; run: ptx ptx-target+ptx-together tested=1
; expect: %{stop:…} = load i64, ptr %{…}
; expect: %{one:…} = call i32 asm sideeffect "{…}ld.volatile.global.u32 r, [$2+4]{…}@q exit; }\0Amovmatrix.sync.aligned{…}", "=r,r,l"(i32 %{…}, i64 %{stop:…})
; expect: call i32 asm "movmatrix{…}", "=r,r"(i32 %{one:…})
; expect: asm sideeffect "@p exit;"
; expect: asm sideeffect "{…}[$0+4]{…}@q exit; }\0Awgmma.fence.sync.aligned;", "l,~{memory}"(i64 %{stop:…})
; expect: asm sideeffect "again: mbarrier.try_wait{…} p, [$0], $1; @p bra done;\0A{…}[$2+4]{…}@q exit; }\0Abra again; done:", "r,r,l"
define void @__smelt_entry(ptr %context) {
  %value = load i32, ptr %context
  %one = call i32 asm "movmatrix.sync.aligned.m8n8.trans.b16 $0, $1;", "=r,r"(i32 %value)
  %two = call i32 asm "movmatrix.sync.aligned.m8n8.trans.b16 $0, $1;", "=r,r"(i32 %one)
  call void asm sideeffect "@p exit;", ""()
  call void asm sideeffect "wgmma.fence.sync.aligned;", "~{memory}"()
  call void asm sideeffect "again: mbarrier.try_wait.parity.shared::cta.b64 p, [$0], $1; @p bra done;\0Abra again; done:", "r,r"(i32 %two, i32 0)
  ret void
}
