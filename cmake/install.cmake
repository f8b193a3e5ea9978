# What `cmake --install` puts where, as the GNU directories have it (bin, lib, include, share/man, share/doc): the command,
# the libraries, headers with a pkg-config file and a CMake package, the manual page, completions, documents. Wheels have their own
# rules, in python/.

# The libraries: libsmelt.so.1 by its SONAME; libsmelt finds the compiler (smelt-cc1 with the
# precompiled preludes, or the compiler library where that was not built) in its own folder's `smelt`.
install(TARGETS smelt EXPORT smeltTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET smelt_cc1)
  install(TARGETS smelt_cc1 RUNTIME DESTINATION ${CMAKE_INSTALL_LIBDIR}/smelt)
  install(FILES ${SMELT_PRELUDE_IMAGES} DESTINATION ${CMAKE_INSTALL_LIBDIR}/smelt)
else()
  install(TARGETS smelt_compiler LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/smelt)
endif()
if(SMELT_CODES)
  install(DIRECTORY ${SMELT_CODES}/ DESTINATION ${CMAKE_INSTALL_LIBDIR}/smelt/smelt-codes OPTIONAL)
endif()
install(TARGETS smelt_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/smelt DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
# Headers of kernels, for other Metal compilers: -I share/smelt/metal. smelt has them built in.
install(FILES ${CMAKE_SOURCE_DIR}/prelude/smelt/layout ${CMAKE_SOURCE_DIR}/prelude/smelt/tensor
        DESTINATION ${CMAKE_INSTALL_DATADIR}/smelt/metal/smelt)

# find_package(smelt) gives smelt::smelt.
include(CMakePackageConfigHelpers)
set(SMELT_CMAKE_FOLDER ${CMAKE_INSTALL_LIBDIR}/cmake/smelt)
configure_package_config_file(cmake/smeltConfig.cmake.in ${CMAKE_BINARY_DIR}/cmake/smeltConfig.cmake
  INSTALL_DESTINATION ${SMELT_CMAKE_FOLDER} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/cmake/smeltConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(EXPORT smeltTargets NAMESPACE smelt:: DESTINATION ${SMELT_CMAKE_FOLDER})
install(FILES ${CMAKE_BINARY_DIR}/cmake/smeltConfig.cmake ${CMAKE_BINARY_DIR}/cmake/smeltConfigVersion.cmake
        DESTINATION ${SMELT_CMAKE_FOLDER})

# pkg-config's file names its folders relative to its own, so that the tree may be moved; the system's stays where it is.
set(SMELT_PC_PREFIX ${CMAKE_INSTALL_PREFIX})
if(NOT SMELT_SYSTEM)
  file(RELATIVE_PATH SMELT_PC_UP ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
  string(REGEX REPLACE "/$" "" SMELT_PC_PREFIX "\${pcfiledir}/${SMELT_PC_UP}")
endif()
configure_file(cmake/smelt.pc.in ${CMAKE_BINARY_DIR}/cmake/smelt.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/cmake/smelt.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# What shells read to complete command lines, each where its shell looks.
set(SMELT_COMPLETIONS bash bash-completion/completions smelt zsh zsh/site-functions _smelt
  fish fish/vendor_completions.d smelt.fish)
set(SMELT_COMPLETION_FILES)
while(SMELT_COMPLETIONS)
  list(POP_FRONT SMELT_COMPLETIONS shell folder name)
  set(file ${CMAKE_BINARY_DIR}/completion/${name})
  add_custom_command(
    OUTPUT ${file}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/completion
    COMMAND ${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${CMAKE_LIBRARY_OUTPUT_DIRECTORY}
            $<TARGET_FILE:smelt_command> completion ${shell} > ${file}
    DEPENDS smelt_command
    COMMENT "Writing the completion for ${shell}"
    VERBATIM)
  list(APPEND SMELT_COMPLETION_FILES ${file})
  install(FILES ${file} DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder})
endwhile()
add_custom_target(smelt_completions ALL DEPENDS ${SMELT_COMPLETION_FILES})

# The manual page is what --help says.
set(SMELT_MANUAL ${CMAKE_BINARY_DIR}/man/smelt.1)
add_custom_command(
  OUTPUT ${SMELT_MANUAL}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/man
  COMMAND ${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${CMAKE_LIBRARY_OUTPUT_DIRECTORY}
          ${Python3_EXECUTABLE} -B ${CMAKE_SOURCE_DIR}/cmake/manual.py $<TARGET_FILE:smelt_command>
          ${CMAKE_SOURCE_DIR}/docs/environment.md ${SMELT_MANUAL}
  DEPENDS smelt_command cmake/manual.py docs/environment.md
  COMMENT "Writing the manual page"
  VERBATIM)
add_custom_target(smelt_manual ALL DEPENDS ${SMELT_MANUAL})
install(FILES ${SMELT_MANUAL} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)

# Documents, laid out as their links want them, and licences.
install(FILES README.md CHANGELOG.md CONTRIBUTING.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs examples licenses DESTINATION ${CMAKE_INSTALL_DOCDIR} PATTERN CMakeLists.txt EXCLUDE
        PATTERN __pycache__ EXCLUDE)
