# The Debian package of `make deb`: one package with all of cmake --install's files. dpkg-shlibdeps says what the
# libraries need (libc6, libllvm19); clang is run as a program.
file(READ LICENSE SMELT_COPYRIGHT)
file(READ licenses/xxHash.txt SMELT_XXHASH_COPYRIGHT)
file(WRITE ${CMAKE_BINARY_DIR}/copyright "${SMELT_COPYRIGHT}\n\nlibsmelt contains xxHash:\n\n${SMELT_XXHASH_COPYRIGHT}")
install(FILES ${CMAKE_BINARY_DIR}/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME smelt)
set(CPACK_PACKAGE_VENDOR "The Smelt authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Metal compute kernels on CPUs and NVIDIA GPUs")
set(CPACK_PACKAGE_DESCRIPTION
  "Compiles Metal compute kernels, as bodies or whole files, with clang and LLVM\nand runs them on x86-64 CPUs, as vector code, and on NVIDIA GPUs. With the\ncommand, the C and C++ interface, and its documentation.")
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "The Smelt authors <smelt@authors.invalid>")
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS clang-19)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libpng16-16t64 | libpng16-16") # opened where an image is written
set(CPACK_DEBIAN_PACKAGE_SUGGESTS libcuda1)
include(CPack)
