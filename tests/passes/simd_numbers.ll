; In a group of known size, an index such as t / 6 * 8 + t % 6 is a number for each thread. Where the gangs agree on how it differs between
; lanes, lanes have constant offsets; where lanes agree on a comparison, it is one branch. Otherwise addresses are gathered.
; run: simd simd-gang threads=96
; expect: icmp ult i32
; absent: @llvm.masked
; absent: any
; run: simd simd-gang
; expect: @llvm.masked.gather
declare i32 @__smelt_thread_index()
declare ptr @__smelt_buffer_address(i32)

define void @__smelt_entry(ptr %context) {
  %a = call ptr @__smelt_buffer_address(i32 0)
  %t = call i32 @__smelt_thread_index()
  %low = and i32 %t, 1
  %high = shl i32 %low, 8
  %rest = lshr i32 %t, 2
  %bits = or i32 %high, %rest
  %place = or i32 %bits, 56
  %cycle = udiv i32 %place, 8
  %wide = zext i32 %cycle to i64
  %from = getelementptr inbounds i32, ptr %a, i64 %wide
  %x = load i32, ptr %from
  %first = icmp ult i32 %t, 64
  br i1 %first, label %some, label %end

some:
  %own = zext i32 %t to i64
  %to = getelementptr inbounds i32, ptr %a, i64 %own
  store i32 %x, ptr %to
  br label %end

end:
  ret void
}
