; A load that LLVM moves out of a loop loses its location; its annotation still has the line.
; run: all lines-noted
; expect: load i32, ptr %context{…}, !annotation !{note:…}
; expect: !{note:…} = !{!"12:7:user.metal"}
; run: all lines-noted+optimise+lines
; expect: load i32, ptr %context{…}, !dbg !{place:…}
; absent: !annotation
; expect: !{place:…} = !DILocation(line: 12, column: 7, scope: !{…})
define void @__smelt_entry(ptr noalias %context, i32 %n, ptr noalias %to) !dbg !5 {
  br label %loop
loop:
  %i = phi i32 [ 0, %0 ], [ %next, %loop ]
  %value = load i32, ptr %context, align 4, !dbg !7
  %sum = mul i32 %value, %i
  %slot = getelementptr i32, ptr %to, i32 %i
  store i32 %sum, ptr %slot, align 4, !dbg !8
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2}
!0 = distinct !DICompileUnit(language: DW_LANG_C_plus_plus_14, file: !1, emissionKind: LineTablesOnly)
!1 = !DIFile(filename: "user.metal", directory: "")
!2 = !{i32 2, !"Debug Info Version", i32 3}
!4 = !DISubroutineType(types: !{})
!5 = distinct !DISubprogram(name: "k", file: !1, line: 10, type: !4, unit: !0, spFlags: DISPFlagDefinition)
!7 = !DILocation(line: 12, column: 7, scope: !5)
!8 = !DILocation(line: 13, column: 7, scope: !5)
