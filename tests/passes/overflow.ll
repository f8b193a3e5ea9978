; Signed arithmetic wraps; a sum that only reaches an address gets clang's promise back.
; run: all wrap
; expect: %next = add i32 %i, 1, !
; expect: %sum = add i32 %i, 2, !
; absent: nsw
; run: all wrap+indexes
; expect: %next = add nsw i32 %i, 1
; expect: %sum = add i32 %i, 2
; absent: !
define void @__smelt_entry(ptr %context) {
  %i = load i32, ptr %context
  %next = add nsw i32 %i, 1
  %index = sext i32 %next to i64
  %place = getelementptr inbounds i32, ptr %context, i64 %index
  %sum = add nsw i32 %i, 2
  store i32 %sum, ptr %place
  ret void
}
