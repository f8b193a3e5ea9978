// smelt.hpp: arrays, kernels with everything a call takes, whole files, and what its errors say.
#include <smelt/autodiff.h>
#include <smelt/graph.h>
#include <smelt/ops.h>
#include <smelt/smelt.hpp>

#include <cmath>
#include <functional>
#include <iostream>

using namespace smelt;

static int failures = 0;

static void expect(bool truth, const std::string &what) {
    if (truth) return;
    failures++;
    std::cerr << "not so: " << what << "\n";
}

template <class T> static void expect_equal(const T &found, const T &wanted, const std::string &what) {
    expect(found == wanted, what);
}

// The error of a call: its status and its sentence.
static void expect_error(smelt_status status, const std::string &message, const std::function<void()> &call) {
    try {
        call();
    } catch (const error &e) {
        expect(e.status() == status && e.what() == message,
               std::string(smelt_status_name(e.status())) + " '" + e.what() + "' is '" + message + "'");
        return;
    }
    expect(false, "an error: " + message);
}

static void arrays_hold_values() {
    array x({1.5f, -2.f, 3.f, 4.f, 5.f, 6.f}, {2, 3});
    expect_equal(x.shape(), Shape{2, 3}, "the shape");
    expect_equal(x.strides(), Strides{3, 1}, "the strides");
    expect(x.shape(-1) == 3 && x.ndim() == 2 && x.size() == 6 && x.nbytes() == 24 && x.itemsize() == 4,
           "the sizes");
    expect(x.dtype() == float32 && x.device() == "cpu" && x.is_contiguous() && x.is_ready(), "what it is");
    expect_equal(x.to_vector<int>(), {1, -2, 3, 4, 5, 6}, "the elements as integers");
    expect_equal(x.astype(float16).data<std::uint16_t>()[0], std::uint16_t{0x3e00},
                 "the bits of 1.5 as float16");
    array copy = x;
    copy.data<float>()[0] = 7;
    expect_equal(x.data<const float>()[0], 7.f, "an element written through a copy of the handle");
    array moved = std::move(copy);
    // NOLINTNEXTLINE(bugprone-use-after-move): what a move leaves is what is tested
    expect(copy.get() == nullptr && moved.get() == x.get(), "a moved handle");
    const array &same = moved;
    moved = same;
    expect(moved.get() == x.get(), "a handle assigned to itself");
}

static void arrays_of_every_kind() {
    expect(array(2).dtype() == int32 && array(2.0).dtype() == float32 && array(true).dtype() == bool_,
           "scalars' dtypes");
    expect(array(std::int64_t{1} << 40).item<std::int64_t>() == std::int64_t{1} << 40, "a 64-bit scalar");
    expect(array(2.5, float16).item<double>() == 2.5 && array(2).ndim() == 0, "a scalar of a given dtype");
    expect(array(std::complex<float>(1, 2)).item<std::complex<float>>() == std::complex<float>(1, 2),
           "a complex one");
    expect_equal(array(std::vector<double>{1, 2}, {2}, bfloat16).to_vector<float>(), {1, 2},
                 "converted values");
    expect_equal(array({true, false}).to_vector<bool>(), {true, false}, "bools");
    expect(empty({0, 3}).to_vector<float>().empty(), "an array without elements");
    expect_equal(full({3}, 2, int8).to_vector<int>(), {2, 2, 2}, "full");
    expect_equal(arange({2, 2}, uint16).to_vector<int>(), {0, 1, 2, 3}, "arange");
    expect(random::uniform({100}, float32, 3).to_vector<float>() ==
               random::uniform({100}, float32, 3).to_vector<float>(),
           "the same seed's numbers");
    std::vector<float> memory = {1, 2, 3};
    array::from_memory(memory.data(), {3}).data<float>()[1] = 9;
    expect_equal(memory[1], 9.f, "the caller's memory");
}

static void the_documentation_s_kernel() {
    auto exp = metal_kernel(
        "myexp", {"inp"}, {"out"},
        "uint elem = thread_position_in_grid.x;\nT tmp = inp[elem];\nout[elem] = metal::exp(tmp);\n");
    array x = random::normal({4, 16}, float16, 7);
    std::int64_t size = static_cast<std::int64_t>(x.size());
    for (const char *device : {"cpu", "cpu-scalar"}) {
        std::vector<array> y = exp({x}, {x.shape()}, {x.dtype()}, {size, 1, 1}, {256, 1, 1},
                                   {{"T", x.dtype()}}, {}, false, device);
        expect(y.size() == 1 && y[0].shape() == x.shape() && y[0].dtype() == float16,
               "the output's shape and dtype");
        std::vector<float> from = x.to_vector<float>(), to = y[0].to_vector<float>();
        for (std::size_t i = 0; i < from.size(); i++)
            expect(std::fabs(to[i] - std::exp(from[i])) <= 1e-3f * std::exp(from[i]),
                   "exp of element " + std::to_string(i));
    }
}

static void every_argument_of_a_call() {
    auto kernel = metal_kernel(
        "all_of_it", {"a", "b"}, {"sum", "count"},
        "uint i = thread_position_in_grid.x;\n"
        "if (FLIP) sum[i] = T(a[a_strides[0] * i] - b); else sum[i] = T(a[a_strides[0] * i] + b + N);\n"
        "count[0] = helper(threads_per_threadgroup.x) + simdgroups_per_threadgroup;\n",
        "uint helper(uint x) { return 100 * x; }\n", false);
    smelt_array *view = nullptr;
    array whole = arange({8});
    smelt_shape half{};
    half.ndim = 1;
    half.size[0] = 4;
    const std::int64_t stride = 2;
    detail::check(smelt_array_view(whole.get(), half, &stride, 0, &view));
    array a = array::adopt(view);
    smelt_run_info info{};
    StreamOrDevice where("cpu");
    where.timeout = 10;
    where.info = &info;
    auto out = kernel({a, array(1.0f)}, {{6}, {}}, {int32, uint32}, {4, 1, 1}, {4, 1, 1},
                      {{"T", int32}, {"N", 5}, {"FLIP", false}}, -1.f, false, where);
    expect_equal(out[0].to_vector<int>(), {6, 8, 10, 12, -1, -1},
                 "sums with strides, and initial values after them");
    expect_equal(out[1].item<int>(), 401, "the count");
    expect(info.threads[0] == 4 && std::string(info.device) == "cpu", "what the run did");
    out = kernel({a, array(1.0f)}, {{4}, {}}, {int32, uint32}, {4, 1, 1}, {4, 1, 1},
                 {{"T", int32}, {"N", 5}, {"FLIP", true}}, std::nullopt, false, Stream("cpu"));
    expect_equal(out[0].to_vector<int>(), {-1, 1, 3, 5}, "differences, on a stream");
    std::function<std::vector<array>(
        const std::vector<array> &, const std::vector<Shape> &, const std::vector<Dtype> &,
        std::tuple<int, int, int>, std::tuple<int, int, int>,
        std::vector<std::pair<std::string, TemplateArg>>, std::optional<float>, bool, StreamOrDevice)>
        function = kernel;
    out = function({a, array(1.0f)}, {{4}, {}}, {int32, uint32}, {4, 1, 1}, {4, 1, 1},
                   {{"T", int32}, {"N", 0}, {"FLIP", true}}, {}, true, {});
    expect_equal(out[0].to_vector<int>(), {-1, 1, 3, 5}, "the same through a std::function");
}

static void outputs_may_be_atomic() {
    auto kernel = metal_kernel("count", {"x"}, {"bins"},
                               "uint i = thread_position_in_grid.x;\n"
                               "atomic_fetch_add_explicit(&bins[x[i] % 4], 1, memory_order_relaxed);\n",
                               "", true, true);
    auto out = kernel({arange({101}, int32)}, {{4}}, {int32}, {101, 1, 1}, {32, 1, 1}, {}, 0.f);
    expect_equal(out[0].to_vector<int>(), {26, 25, 25, 25}, "the counts");
}

static void math_modes_are_told_to_kernels() {
    CompileOptions fast;
    fast.math_mode = MathMode::Fast;
    for (bool is_fast : {false, true}) {
        auto kernel = metal_kernel("mode", {}, {"out"},
                                   "#ifdef __FAST_MATH__\nout[0] = 1;\n#else\nout[0] = 0;\n#endif\n", "",
                                   true, false, is_fast ? fast : CompileOptions());
        expect_equal(kernel({}, {{1}}, {bool_}, {1, 1, 1}, {1, 1, 1})[0].item<bool>(), is_fast,
                     "__FAST_MATH__");
    }
}

static void errors_say_what_is_wrong() {
    auto kernel = metal_kernel("add", {"a", "b"}, {"out"},
                               "uint i = thread_position_in_grid.x;\nout[i] = a[i] + b[i];\n");
    array x = ones({4});
    const Size four{4, 1, 1};
    expect_error(SMELT_ERROR_INVALID_ARGUMENT, "kernel 'add': inputs has 1 entries, expected 2",
                 [&] { kernel({x}, {{4}}, {float32}, four, four); });
    expect_error(SMELT_ERROR_INVALID_ARGUMENT, "kernel 'add': output_shapes has 2 entries, expected 1",
                 [&] { kernel({x, x}, {{4}, {4}}, {float32}, four, four); });
    expect_error(SMELT_ERROR_INVALID_ARGUMENT, "kernel 'add': output_dtypes has 0 entries, expected 1",
                 [&] { kernel({x, x}, {{4}}, {}, four, four); });
    expect_error(SMELT_ERROR_INVALID_ARGUMENT, "grid (4, 0, 1): each size must be at least 1",
                 [&] { kernel({x, x}, {{4}}, {float32}, {4, 0, 1}, four); });
    expect_error(SMELT_ERROR_LIMIT, "dimensions of a shape: 17 are given, at most 16 are supported",
                 [] { zeros(Shape(17, 1)); });
    expect_error(SMELT_ERROR_INVALID_ARGUMENT, "shape: it has 6 elements, but 2 values are given",
                 [] { array({1, 2}, {2, 3}); });
    expect_error(SMELT_ERROR_INVALID_ARGUMENT, "elements of float32 are asked for as int32",
                 [&] { x.data<int>(); });
    expect_error(SMELT_ERROR_INVALID_ARGUMENT, "item: the array has 4 elements, expected 1",
                 [&] { x.item<float>(); });
    expect_error(SMELT_ERROR_INVALID_ARGUMENT, "dimension 1: the array has 1 dimensions",
                 [&] { x.shape(1); });
    expect_error(SMELT_ERROR_INVALID_ARGUMENT, "dtype float16: elements of 4 bytes are given, expected 2",
                 [] {
                     float memory[1];
                     array::from_memory(memory, {1}, float16);
                 });
    try {
        metal_kernel("bad", {}, {"out"}, "out[0] = nothing_of_this_name;\n")({}, {{1}}, {float32}, {1, 1, 1},
                                                                             {1, 1, 1});
        expect(false, "a compile error");
    } catch (const error &e) {
        expect(e.status() == SMELT_ERROR_COMPILE && std::string(e.what()).find("bad.body:1:10") == 0,
               e.what());
    }
    expect_error(SMELT_ERROR_NO_DEVICE, "there is no device 'tpu'", [] {
        try {
            Stream("tpu");
        } catch (const error &e) { // what else the sentence says is the C interface's affair
            throw error(e.status(), std::string(e.what()).find("tpu") != std::string::npos
                                        ? "there is no device 'tpu'"
                                        : e.what());
        }
    });
}

static const char *const sums =
    "#include <metal_stdlib>\nusing namespace metal;\n"
    "constant int scale [[function_constant(0)]];\nconstant bool negate [[function_constant(1)]];\n"
    "struct Size { uint columns; float factor; };\n"
    "kernel void row_sum(device const float *x [[buffer(0)]], device float *out [[buffer(1)]],\n"
    "    constant Size &size [[buffer(2)]], threadgroup float *part [[threadgroup(0)]],\n"
    "    uint row [[threadgroup_position_in_grid]], uint t [[thread_position_in_threadgroup]]) {\n"
    "  part[t] = t < size.columns ? x[row * size.columns + t] : 0;\n"
    "  threadgroup_barrier(mem_flags::mem_threadgroup);\n"
    "  if (t == 0) { float sum = 0; for (uint i = 0; i < 8; i++) sum += part[i];\n"
    "    out[row] = (negate ? -sum : sum) * scale * size.factor; } }\n"
    "kernel void fill(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i] = i; }\n";

static void whole_files_run() {
    Library library = Library::from_source(sums, "sums.metal");
    expect_equal(library.function_names(), {"row_sum", "fill"}, "the functions");
    Function row_sum = library.function("row_sum", {{0, 3}, {"negate", true}});
    struct {
        std::uint32_t columns;
        float factor;
    } size = {4, 0.5f};
    array x = arange({2, 4}), out = zeros({2});
    row_sum.dispatch_threadgroups({x, out, Buffer::bytes(size)}, {2, 1, 1}, {8, 1, 1}, {8 * sizeof(float)});
    expect_equal(out.to_vector<float>(), {-9, -33}, "the rows' sums");
    library.function("fill").dispatch_threads({out}, {2, 1, 1}, {2, 1, 1}, {}, "cpu-scalar");
    expect_equal(out.to_vector<float>(), {0, 1}, "what fill wrote");
    expect_error(SMELT_ERROR_INVALID_ARGUMENT, "groups (0, 1, 1): each size must be at least 1",
                 [&] { row_sum.dispatch_threadgroups({x}, {0, 1, 1}, {8, 1, 1}); });
}

// Operations and derivatives have no classes: the C functions take and give handles.
static void operations_and_derivatives() {
    array x({1.0f, -2.0f, 3.0f});
    smelt_tape *tape = nullptr;
    smelt_array *y = nullptr, *slope = nullptr, *input = x.get();
    smelt_apply_desc square = {};
    square.operation = SMELT_OPERATION_SQUARE;
    square.inputs[0] = input;
    detail::check(smelt_tape_begin(&tape));
    detail::check(smelt_tape_watch(tape, input));
    detail::check(smelt_apply(&square, &y));
    detail::check(smelt_tape_vjp(tape, &y, 1, nullptr, &input, 1, &slope));
    smelt_tape_release(tape);
    expect_equal(array::adopt(y).to_vector<float>(), {1, 4, 9}, "the squares");
    expect_equal(array::adopt(slope).to_vector<float>(), {2, -4, 6}, "their derivatives");
}

int main() {
    arrays_hold_values();
    arrays_of_every_kind();
    the_documentation_s_kernel();
    every_argument_of_a_call();
    outputs_may_be_atomic();
    math_modes_are_told_to_kernels();
    errors_say_what_is_wrong();
    whole_files_run();
    operations_and_derivatives();
    return failures ? 1 : 0;
}
