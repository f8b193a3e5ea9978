; What no engine can run is refused by name.
; run: all refuse
; fails: function 'missing' is called but not defined; if another file defines it, include that file
declare void @_Z7missingv()

define void @__smelt_entry(ptr %context) {
  call void @_Z7missingv()
  ret void
}
