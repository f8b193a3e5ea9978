# Labels of tests, by their names: `ctest -L kernel`. Each test has the label of its kind; `slow` are, in addition, those that
# take more than about a second of a processor, and `make quick` leaves them out.
set(SMELT_LABEL_unit "^(unit|cpp|env|error|pass)_|^(abi|abi_glibc|layers|mutations_fit)$")
set(SMELT_LABEL_kernel "^(kernel|check|library|prelude|ptx|ml|seeds|example|gpu|accuracy)_|^(accuracy|demo)$")
set(SMELT_LABEL_lint "^lint_")
set(SMELT_LABEL_python "^python_")
set(SMELT_LABEL_fuzz "^(long_)?(fuzz|csmith)_?")
set(SMELT_LABEL_slow "^(fuzz|long|ml|accuracy)_|^lint_(clang_tidy|cppcheck|mypy)$|^(accuracy|demo|prelude_library|gpu_ptx|gpu_suite.*|check_planted|ptx_(coarse.*|matrix|simdgroup))$"
  "^library_(integer|operators|matrix|relational|conversions|pack|packed|own_functions)$"
  "^env_(bench_.*|budgets|build|cache_.*|cc1|codes|compiler_.*|hostile_files|install|progress|run_cuda|show_.*|trace|tune|two_builds)$"
  "^unit_(attention|codegen|cuda_launch_package|cuda_memory|engine|gpu_package|graph_.*|interrupt.*|isolation|kernel_log|linalg|matmul|process|program|progress|shipped|tensor_arguments|tiers|tile.*|tune)$"
  "^kernel_(avx2|sse2|package)_" "^seeds_(elementwise|(seed_)?grid_sample|linalg)$"
  "^kernel_(atomic_operations|attributes_(narrow|wide)|lanes_(gather_many|known_bits|positions|rows)|mlx_offsets|type_(packed_matrix|vectors))$"
  "^kernel_simd_(many_loops|shuffles|vectors)$"
  "^python_(doctor|types|typed_docs|docs_python|example_.*|metal_kernel.*|launch_timeout|mlx.*|operations|wheel)$")

# Those of ten seconds and more, which ctest starts first: none of them is left to run alone at the end.
set(SMELT_LONGEST "^lint_(clang_tidy|cppcheck|mypy)$|^(accuracy|demo|gpu_suite_itself|gpu_ptx|library_packed|ptx_(coarse|matrix)|seeds_grid_sample)$"
  "^env_(bench_.*|budgets|build|cache_(damage|folder)|cc1|compiler_faults|compiler_limits|install|progress)$|^ml_(tensor|tensor_programs|gemm)$"
  "^python_(attention|doctor|graph|graph_operations|graph_saved|nn|operations|quantize|sequence|sorting|tuning|types)$|^fuzz_kernels_(1|1001)$|^kernel_simd_vectors$"
  "^unit_(cuda_memory|graph_(elementwise|reduce|gradient)|interrupt|linalg|matmul|process|tiers)$")

# Sets the labels and costs of this folder's tests, at its end. A test without a kind is an error.
function(smelt_label_tests)
  get_directory_property(tests TESTS)
  foreach(test ${tests})
    get_test_property(${test} LABELS labels)
    list(REMOVE_ITEM labels NOTFOUND)
    foreach(label unit kernel python fuzz lint slow)
      foreach(pattern ${SMELT_LABEL_${label}})
        if(test MATCHES "${pattern}")
          list(APPEND labels ${label})
        endif()
      endforeach()
    endforeach()
    list(REMOVE_DUPLICATES labels)
    foreach(pattern ${SMELT_LONGEST})
      if(test MATCHES "${pattern}")
        set_tests_properties(${test} PROPERTIES COST 10)
      endif()
    endforeach()
    if(NOT labels OR labels STREQUAL "slow")
      message(FATAL_ERROR "the test ${test} has no label: add its name to cmake/labels.cmake")
    endif()
    set_tests_properties(${test} PROPERTIES LABELS "${labels}")
  endforeach()
endfunction()
