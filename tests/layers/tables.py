"""What test_layers.py allows within a folder: cycles of files, and the words that external names begin with."""

# Files of a folder that need each other, and why that stays.
CYCLES = [
    ("src/array", "copy space", "a copy to another memory space is made of copies on the host, and the other way round"),
    ("src/check", "advice check memory race undefined", "all of them work on the one state of a launch, and name what they find"),
    ("src/device/cuda", "context event executable expand kept launch log memory module outside recording space staging stream timeline wait",
     "a context ends its streams, memory and modules, which all work within a context"),
    ("cli", "completion main", "completion is a command, and completes the names of all commands"),
    ("python/extension", "apply array array_data array_numbers dlpack exchange index interop lists numpy operators tape text torch values",
     "operators give arrays, arrays have operators, and both take and give other libraries' arrays"),
    ("python/extension", "bind kernel", "a kernel binds itself to the arguments of a call"),
    ("src/linalg", "gradient qr solve", "derivatives of solves are made of solves and factorisations, which have derivatives"),
    ("src/autodiff", "gradient node rules_complex rules_composed rules_elementwise sweep",
     "the derivative of an operation that others express is that of the others, by a tape of its own"),
    ("src/ops", "composite composite_nn convolve expression fourier hadamard nodes operation quantize random rope sample", "compositions are operations made of operations"),
]

# Folders whose files stand in subfolders by subject.
DIVIDED = ["src/compiler/ptx", "src/compiler/simd"]

# How the external names of a folder's objects begin: in whole words. A name belongs to the folder with the longest
# beginning that fits; names in full say that theirs is another folder's word. Names of the public API (smelt_) and
# passes (pass_) may stand anywhere.
PREFIXES = {
    "smelt_objects": {
        "kernels": "kernel_text matmul shipped",
        "prelude": "bitcode_interface build_id code_interface prelude_macros prelude_texts",
        "src/abi": "compile_progress compile_request compile_result compile_stage engine image",
        "src/array": "array dtype element memory packed shape space store_reals walk",
        "src/autodiff": "node rule sweep tape vjp",
        "src/guard": "",
        "src/linalg": "dense gradient halves lapack limbs lu panels reference sides",
        "src/base": "alarm arena background error fail file format hash hasher in interrupt json log pipe process reserved setting shared string text"
                    " thread trace",
        "src/check": "advice check finding_is_advice findings memories race undefined",
        "src/device": "code_list device executable gpu launch preparation",
        "src/device/cpu": "arch barrier checked cpu executable_codes fault fiber fibers gang interruption leave object pool runtime scalar schedule"
                          " simdgroup tile worker",
        "src/device/cuda": "cuda flight",
        "src/frontend": "cache clang code companion compile compiler compiling conditions diagnostics gpu_target hint includes installed message metal once overlay prelude"
                        " progress target translation user_line",
        "src/graph": "branches compiled crew execution fused fusion graph plan record records stored",
        "src/kernel": "also arguments array_for array_is_large bound device_to_show found function kernel launch_begin launch_is_tested launch_measure launch_prepare"
                      " launch_run library loaded profile settings shape_for_stage stream tensor_is_used tensor_of trace_compile trace_launch"
                      " trace_translation transfer",
        "src/tensor": "safetensors",
        "src/tune": "sqlite store tune",
        "src/ops": "accumulate attention call compose convolve delta elementwise evaluate expr host indexed map operation product program routine rows sort",
        "src/package": "constants describe features package read shape_any shape_serves shapes write",
        "src/source": "attribute attributes bodies casts change conditional declaration directive directives entries finder imbalance keyword"
                      " forwarder literal parameter parameters program_add_entry_point program_add_text program_create program_free program_origin refusal resource rewrite"
                      " signature sites structure token tokens",
    },
    "smelt_compiler_objects": {
        "src/abi": "compile_progress compile_stage",
        "src/base": "arena string text",
        "src/compiler": "bits bounds budget build called_name constant engine escape fold intrinsic is_constant_integer is_float_function phi"
                        " pipeline quick run simdgroup type unit",
        "src/compiler/analysis": "base callee callees flow paths phase phases predicate uniform zeros",
        "src/compiler/check": "check",
        "src/compiler/cpu": "cpu inside memory outside thread",
        "src/compiler/passes": "alignment constants declare hold initialiser landmarks lines returns sink specialise staging unrolled",
        "src/compiler/ptx": "address coarse divergence guarded matrix ptx rounds wide",
        "src/compiler/simd": "access ahead atomic chunk chunks context control copy dense edges effects emit extent first_gang gang known lanes mask matrix_address_at matrix_emit matrix_end_schedule matrix_find matrix_sum"
                             " matrix_block matrix_forget matrix_forms matrix_give matrix_incoming matrix_is_awaited matrix_lanes_of_half"
                             " matrix_load_element matrix_load_pair matrix_load_row_of matrix_load_words matrix_loop matrix_operand_of_reader"
                             " matrix_row_of matrix_second_half matrix_write neighbours packed pattern piece private range reach remark report rows"
                             " spot"
                             " scalar shape simd simdgroup_shape speculation spread tile tiles turns value words wrapped",
    },
}
