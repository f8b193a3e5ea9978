; Of the calls that were inlined, the innermost outside the prelude says the line.
; run: all lines
; expect: store i32 1, ptr %context{…}, !dbg !{place:…}
; expect: !{place:…} = !DILocation(line: 12, column: 3, scope: !{…})
define void @__smelt_entry(ptr %context) !dbg !5 {
  store i32 1, ptr %context, !dbg !7
  ret void, !dbg !8
}
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2}
!0 = distinct !DICompileUnit(language: DW_LANG_C_plus_plus_14, file: !1, emissionKind: LineTablesOnly)
!1 = !DIFile(filename: "user.metal", directory: "")
!2 = !{i32 2, !"Debug Info Version", i32 3}
!3 = !DIFile(filename: "/build/<metal_math>", directory: "")
!4 = !DISubroutineType(types: !{})
!5 = distinct !DISubprogram(name: "k", file: !1, line: 10, type: !4, unit: !0, spFlags: DISPFlagDefinition)
!6 = distinct !DISubprogram(name: "inner", file: !3, line: 90, type: !4, unit: !0, spFlags: DISPFlagDefinition)
!7 = !DILocation(line: 99, column: 1, scope: !6, inlinedAt: !8)
!8 = distinct !DILocation(line: 12, column: 3, scope: !5)
