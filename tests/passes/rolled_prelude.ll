; On CPUs, requests to unroll long loops of the prelude are removed. Those of its short loops and of the kernel's own stay.
; run: scalar rolled
; run: simd rolled
; expect: br label %long, !dbg
; expect: br label %short, !dbg !{…}, !llvm.loop
; expect: br label %own, !dbg !{…}, !llvm.loop
; absent: br label %long, !dbg !{…}, !llvm.loop
; run: ptx rolled
; expect: br label %long, !dbg !{…}, !llvm.loop
; expect: br label %short, !dbg !{…}, !llvm.loop
; expect: br label %own, !dbg !{…}, !llvm.loop
define void @__smelt_entry(ptr %context) !dbg !5 {
entry:
  br label %long
long:
  %i = load volatile i32, ptr %context
  %more = icmp slt i32 %i, 128
  br i1 %more, label %next, label %short
next:
  br label %long, !dbg !7, !llvm.loop !10
short:
  %j = load volatile i32, ptr %context
  %few = icmp slt i32 %j, 32
  br i1 %few, label %again, label %own
again:
  br label %short, !dbg !7, !llvm.loop !12
own:
  %k = load volatile i32, ptr %context
  %many = icmp slt i32 %k, 128
  br i1 %many, label %body, label %end
body:
  br label %own, !dbg !8, !llvm.loop !13
end:
  ret void
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
!8 = !DILocation(line: 12, column: 3, scope: !5)
!9 = !{!"llvm.loop.unroll.full"}
!10 = distinct !{!10, !9}
!12 = distinct !{!12, !9}
!13 = distinct !{!13, !9}
