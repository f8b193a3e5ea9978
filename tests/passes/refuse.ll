; What no engine can run is refused by name.
; run: all refuse
; fails: function 'missing' is called but not defined
declare void @_Z7missingv()

define void @__smelt_entry(ptr %context) {
  call void @_Z7missingv()
  ret void
}
