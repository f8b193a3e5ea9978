; No lane has the number 40: the entry reports that comparison to the checker, and not the one that may hold. It does so
; only if advice (8) is requested.
; run: check check-conditions also=8
; expect: call void @smelt_check_condition(ptr @smelt_check_site1)
; expect: %never = icmp eq i32 %lane, 40
; absent: smelt_check_site2
; run: check check-conditions
; absent: smelt_check_condition
target triple = "x86_64-unknown-linux-gnu"
declare i32 @__smelt_lane()
define void @__smelt_entry(ptr %o) !dbg !4 {
entry:
  %lane = call i32 @__smelt_lane(), !dbg !7
  %never = icmp eq i32 %lane, 40, !dbg !7
  br i1 %never, label %a, label %b, !dbg !7
a:
  store i32 1, ptr %o, !dbg !8
  br label %b
b:
  %may = icmp eq i32 %lane, 4, !dbg !8
  br i1 %may, label %c, label %d, !dbg !8
c:
  store i32 2, ptr %o, !dbg !8
  br label %d
d:
  ret void
}
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2}
!0 = distinct !DICompileUnit(language: DW_LANG_C_plus_plus, file: !1, emissionKind: LineTablesOnly)
!1 = !DIFile(filename: "k.metal", directory: "/")
!2 = !{i32 2, !"Debug Info Version", i32 3}
!3 = !DISubroutineType(types: !9)
!4 = distinct !DISubprogram(name: "k", file: !1, line: 1, type: !3, unit: !0, spFlags: DISPFlagDefinition)
!7 = !DILocation(line: 2, column: 3, scope: !4)
!8 = !DILocation(line: 3, column: 3, scope: !4)
!9 = !{null}
