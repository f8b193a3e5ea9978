// smelt.hpp — smelt from C++17: kernels as functions of arrays, in the manner of MLX's C++ `metal_kernel`.
//
// Everything is a thin layer over smelt.h, in headers alone; link with libsmelt. The rules of smelt.h hold
// here.
//
// Errors.    Failing calls throw smelt::error, with the C interface's status and its sentence. Nothing else
// is
//            thrown, except std::bad_alloc.
// Ownership. Objects are handles: copies share one array, kernel, library or stream, and the last one
// releases it. get() lends the C handle, adopt() takes one over, so that both interfaces can be mixed.
//            A default-constructed object is empty; only assigning to it, destroying it and get() (a null
//            pointer) are allowed.
// Threads.   As in smelt.h. No object may be assigned to while another thread uses it.
#ifndef SMELT_HPP
#define SMELT_HPP

#include <smelt/array.hpp>

#include <cstdio>
#include <memory>
#include <optional>
#include <tuple>
#include <variant>

namespace smelt {

// ---- Where and how a kernel runs --------------------------------------------------------------

// A sequence of work on a device.
class Stream {
  public:
    explicit Stream(const std::string &device = "cpu") : device_(device) {
        smelt_stream *made = nullptr;
        detail::check(smelt_stream_create(device.c_str(), &made));
        handle_ = handle(made);
    }
    // The device's default stream.
    static Stream default_of(const std::string &device) {
        smelt_stream *found = nullptr;
        detail::check(smelt_stream_default(device.c_str(), &found));
        return Stream(found, device);
    }
    // A stream over the caller's CUstream.
    static Stream from_native(const std::string &device, void *native) {
        smelt_stream *made = nullptr;
        detail::check(smelt_stream_from_native(device.c_str(), native, &made));
        return Stream(made, device);
    }
    smelt_stream *get() const noexcept { return handle_.get(); }
    const std::string &device() const noexcept { return device_; }
    // Waits for all enqueued work; throws late errors of kernels.
    void synchronize() const { detail::check(smelt_stream_wait(get())); }
    bool is_done() const {
        bool done = false;
        detail::check(smelt_stream_is_done(get(), &done));
        return done;
    }

  private:
    using handle = detail::handle<smelt_stream, smelt_stream_retain, smelt_stream_release>;
    Stream(smelt_stream *made, const std::string &device) : handle_(made), device_(device) {}
    handle handle_;
    std::string device_;
};

// A device by name, a stream, or nothing (device cpu); and further settings of smelt_run_desc for one run.
struct StreamOrDevice {
    StreamOrDevice() = default;
    StreamOrDevice(const char *name) : device(name) {}
    StreamOrDevice(std::string name) : device(std::move(name)) {}
    StreamOrDevice(const Stream &order) : device(order.device()), stream(order) {}

    std::string device = "cpu"; // "cpu", "cpu-scalar", "cuda", "cuda:1" …
    std::optional<Stream> stream;
    double timeout = 0;                   // seconds; 0: none
    std::string profile;                  // "apple": its limits
    smelt_run_info *info = nullptr;       // receives facts about the run
    smelt_interrupt *interrupt = nullptr; // ends the run when it is raised
};

enum class MathMode { Safe = SMELT_MATH_SAFE, Relaxed = SMELT_MATH_RELAXED, Fast = SMELT_MATH_FAST };

struct CompileOptions {
    MathMode math_mode = MathMode::Safe;
    int metal_version = 0; // 320 for Metal 3.2, the default; 400 for 4.0 …
    std::vector<std::string> include_paths;
    std::vector<std::string> macros; // "NAME" (which is 1) or "NAME=TEXT"
};

// Three sizes, none of which may be 0.
using Size = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
using TemplateArg = std::variant<int, bool, Dtype>;

namespace detail {

inline void set_size(const char *what, const Size &size, std::int64_t result[3]) {
    std::tie(result[0], result[1], result[2]) = size;
    for (int i = 0; i < 3; i++)
        if (result[i] <= 0)
            refuse(std::string(what) + " (" + std::to_string(result[0]) + ", " + std::to_string(result[1]) +
                   ", " + std::to_string(result[2]) + "): each size must be at least 1");
}

template <class Desc> void set_where(const StreamOrDevice &s, Desc &desc) {
    desc.device = s.device.c_str();
    desc.stream = s.stream ? s.stream->get() : nullptr;
    desc.timeout = s.timeout;
    desc.profile = s.profile.empty() ? nullptr : s.profile.c_str();
    desc.info = s.info;
    desc.interrupt = s.interrupt;
}

// The list that desc.macros points into is returned, and must live as long.
template <class Desc>
[[nodiscard]] std::vector<const char *> set_options(const CompileOptions &options, Desc &desc) {
    check_count("include paths", options.include_paths.size(), SMELT_MAX_INCLUDE_PATHS - 1);
    desc.math = static_cast<smelt_math_mode>(options.math_mode);
    desc.metal_version = options.metal_version;
    for (std::size_t i = 0; i < options.include_paths.size(); i++)
        desc.include_paths[i] = options.include_paths[i].c_str();
    std::vector<const char *> macros;
    macros.reserve(options.macros.size() + 1);
    for (const std::string &macro : options.macros) macros.push_back(macro.c_str());
    macros.push_back(nullptr);
    desc.macros = macros.data();
    return macros;
}

inline void set_names(const std::string &what, const std::vector<std::string> &names,
                      const char *result[SMELT_MAX_ARGUMENTS]) {
    check_count(what, names.size(), SMELT_MAX_ARGUMENTS);
    for (std::size_t i = 0; i < names.size(); i++) result[i] = names[i].c_str();
}

inline smelt_template c_template(const std::string &name, const TemplateArg &value) {
    smelt_template result{};
    result.name = name.c_str();
    if (const int *integer = std::get_if<int>(&value)) {
        result.kind = SMELT_TEMPLATE_INT;
        result.integer = *integer;
    } else if (const bool *boolean = std::get_if<bool>(&value)) {
        result.kind = SMELT_TEMPLATE_BOOL;
        result.boolean = *boolean;
    } else {
        result.kind = SMELT_TEMPLATE_DTYPE;
        result.dtype = std::get<Dtype>(value);
    }
    return result;
}

} // namespace detail

// ---- Kernels from bodies ----------------------------------------------------------------------

// A kernel as a function of arrays: what metal_kernel returns.
class CustomKernelFunction {
  public:
    CustomKernelFunction() = default;
    smelt_kernel *get() const noexcept { return handle_.get(); }

    // Runs the kernel on `grid` threads in groups of `threadgroup`, and returns an array for each output
    // name. Compiles it at the first call with new dtypes or template arguments. `init_value` fills the
    // outputs first; `verbose` prints the generated source. On a GPU the launch is enqueued.
    std::vector<array> operator()(const std::vector<array> &inputs, const std::vector<Shape> &output_shapes,
                                  const std::vector<Dtype> &output_dtypes, const Size &grid,
                                  const Size &threadgroup,
                                  const std::vector<std::pair<std::string, TemplateArg>> &template_args = {},
                                  std::optional<float> init_value = std::nullopt, bool verbose = false,
                                  const StreamOrDevice &s = {}) const {
        auto run = std::make_unique<smelt_run_desc>(); // zeros: every default
        set_arrays(inputs, output_shapes, output_dtypes, *run);
        detail::set_size("grid", grid, run->grid);
        detail::set_size("threadgroup", threadgroup, run->threadgroup);
        detail::check_count("template arguments", template_args.size(), SMELT_MAX_TEMPLATES);
        for (std::size_t i = 0; i < template_args.size(); i++)
            run->templates[i] = detail::c_template(template_args[i].first, template_args[i].second);
        run->initialise = init_value.has_value();
        run->init_value = static_cast<double>(init_value.value_or(0));
        detail::set_where(s, *run);
        if (verbose) print_source(*run);
        return results(*run);
    }

  private:
    friend CustomKernelFunction metal_kernel(const std::string &, const std::vector<std::string> &,
                                             const std::vector<std::string> &, const std::string &,
                                             const std::string &, bool, bool, const CompileOptions &);
    using handle = detail::handle<smelt_kernel, smelt_kernel_retain, smelt_kernel_release>;

    void check_length(const char *what, std::size_t given, std::size_t expected) const {
        if (given != expected)
            detail::refuse("kernel '" + name_ + "': " + what + " has " + std::to_string(given) +
                           " entries, expected " + std::to_string(expected));
    }
    void set_arrays(const std::vector<array> &inputs, const std::vector<Shape> &shapes,
                    const std::vector<Dtype> &dtypes, smelt_run_desc &run) const {
        check_length("inputs", inputs.size(), inputs_);
        check_length("output_shapes", shapes.size(), outputs_);
        check_length("output_dtypes", dtypes.size(), outputs_);
        for (std::size_t i = 0; i < inputs_; i++) run.inputs[i] = inputs[i].get();
        for (std::size_t i = 0; i < outputs_; i++) {
            run.output_shapes[i] = detail::c_shape(shapes[i]);
            run.output_dtypes[i] = dtypes[i];
        }
        run.output_count = static_cast<int>(outputs_);
    }
    void print_source(const smelt_run_desc &run) const {
        char *text = nullptr;
        detail::check(smelt_kernel_show(get(), &run, SMELT_STAGE_SOURCE, &text));
        std::fputs(text, stdout);
        smelt_free(text);
    }
    std::vector<array> results(const smelt_run_desc &run) const {
        std::vector<array> results(outputs_);
        std::vector<smelt_array *> made(outputs_);
        detail::check(smelt_kernel_run(get(), &run, made.data()));
        for (std::size_t i = 0; i < outputs_; i++) results[i] = array::adopt(made[i]);
        return results;
    }

    handle handle_;
    std::string name_;
    std::size_t inputs_ = 0, outputs_ = 0;
};

// A kernel from the body of a Metal function; its signature is generated from the names, from the arrays of a
// call and from the attributes that the body mentions. Compiles nothing yet.
inline CustomKernelFunction metal_kernel(const std::string &name, const std::vector<std::string> &input_names,
                                         const std::vector<std::string> &output_names,
                                         const std::string &source, const std::string &header = "",
                                         bool ensure_row_contiguous = true, bool atomic_outputs = false,
                                         const CompileOptions &compile_options = {}) {
    smelt_kernel_desc desc{};
    desc.name = name.c_str();
    desc.source = source.c_str();
    desc.header = header.empty() ? nullptr : header.c_str();
    detail::set_names("input_names", input_names, desc.inputs);
    detail::set_names("output_names", output_names, desc.outputs);
    desc.strided = !ensure_row_contiguous;
    desc.atomic_outputs = atomic_outputs;
    std::vector<const char *> macros = detail::set_options(compile_options, desc);
    smelt_kernel *made = nullptr;
    detail::check(smelt_kernel_create(&desc, &made));
    CustomKernelFunction result;
    result.handle_ = CustomKernelFunction::handle(made);
    result.name_ = name;
    result.inputs_ = input_names.size();
    result.outputs_ = output_names.size();
    return result;
}

// ---- Whole .metal files -----------------------------------------------------------------------

// The binding of one [[buffer(i)]]: an array, a copy of a value's bytes, or nothing.
class Buffer {
  public:
    Buffer() = default;
    Buffer(const array &elements) : array_(elements) {}
    template <class T> static Buffer bytes(const T &value) {
        static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>,
                      "only plain values have bytes to copy");
        Buffer result;
        const unsigned char *first = reinterpret_cast<const unsigned char *>(&value);
        result.bytes_.assign(first, first + sizeof value);
        return result;
    }
    // Valid as long as this buffer.
    smelt_buffer get() const noexcept {
        smelt_buffer result{};
        result.array = array_.get();
        result.bytes = bytes_.empty() ? nullptr : bytes_.data();
        result.size = bytes_.size();
        return result;
    }

  private:
    array array_;
    std::vector<unsigned char> bytes_;
};

// The value of a function constant, found by its index or its name.
class Constant {
  public:
    template <class T> Constant(int index, T value) : value_(c_value(value)) { value_.index = index; }
    template <class T> Constant(std::string name, T value) : value_(c_value(value)), name_(std::move(name)) {}
    // Valid as long as this constant.
    smelt_constant get() const noexcept {
        smelt_constant result = value_;
        if (!name_.empty()) result.name = name_.c_str();
        return result;
    }

  private:
    template <class T> static smelt_constant c_value(T value) {
        static_assert(std::is_arithmetic_v<T>, "a function constant is a number or a bool");
        smelt_constant result{};
        result.dtype = std::is_same_v<T, bool> ? bool_ : std::is_integral_v<T> ? int64 : float32;
        if constexpr (std::is_integral_v<T>)
            result.value.integer = static_cast<std::int64_t>(value);
        else
            result.value.real = static_cast<double>(value);
        return result;
    }
    smelt_constant value_;
    std::string name_;
};

// One kernel function of a library. Buffers are given by index; arrays bound to writable ones receive the
// results.
class Function {
  public:
    Function() = default;
    static Function adopt(smelt_function *made) {
        Function result;
        result.handle_ = handle(made);
        return result;
    }
    smelt_function *get() const noexcept { return handle_.get(); }

    // `grid` counts threads, `groups` threadgroups; `threadgroup_memory` is in bytes, by index.
    void dispatch_threads(const std::vector<Buffer> &buffers, const Size &grid, const Size &threadgroup,
                          const std::vector<std::size_t> &threadgroup_memory = {},
                          const StreamOrDevice &s = {}) const {
        auto dispatch = described(buffers, threadgroup, threadgroup_memory, s);
        detail::set_size("grid", grid, dispatch->grid);
        detail::check(smelt_function_run(get(), dispatch.get()));
    }
    void dispatch_threadgroups(const std::vector<Buffer> &buffers, const Size &groups,
                               const Size &threadgroup,
                               const std::vector<std::size_t> &threadgroup_memory = {},
                               const StreamOrDevice &s = {}) const {
        auto dispatch = described(buffers, threadgroup, threadgroup_memory, s);
        detail::set_size("groups", groups, dispatch->groups);
        detail::check(smelt_function_run(get(), dispatch.get()));
    }

  private:
    using handle = detail::handle<smelt_function, smelt_function_retain, smelt_function_release>;

    static std::unique_ptr<smelt_dispatch_desc> described(const std::vector<Buffer> &buffers,
                                                          const Size &threadgroup,
                                                          const std::vector<std::size_t> &memory,
                                                          const StreamOrDevice &s) {
        detail::check_count("buffers", buffers.size(), SMELT_MAX_BUFFERS);
        detail::check_count("threadgroup memory", memory.size(), SMELT_MAX_BUFFERS);
        auto desc = std::make_unique<smelt_dispatch_desc>();
        for (std::size_t i = 0; i < buffers.size(); i++) desc->buffers[i] = buffers[i].get();
        for (std::size_t i = 0; i < memory.size(); i++) desc->threadgroup_memory[i] = memory[i];
        detail::set_size("threadgroup", threadgroup, desc->threadgroup);
        detail::set_where(s, *desc);
        return desc;
    }
    handle handle_;
};

// The kernel functions of a .metal file or a package.
class Library {
  public:
    Library() = default;
    explicit Library(const std::string &path, const CompileOptions &options = {}) {
        smelt_library_desc desc{};
        desc.path = path.c_str();
        open(desc, options);
    }
    // From text; messages call it `name`.
    static Library from_source(const std::string &source, const std::string &name = "",
                               const CompileOptions &options = {}) {
        smelt_library_desc desc{};
        desc.source = source.c_str();
        desc.path = name.empty() ? nullptr : name.c_str();
        Library result;
        result.open(desc, options);
        return result;
    }
    smelt_library *get() const noexcept { return handle_.get(); }

    std::vector<std::string> function_names() const {
        std::vector<std::string> names;
        int count = smelt_library_function_count(get());
        names.reserve(static_cast<std::size_t>(count > 0 ? count : 0));
        for (int i = 0; i < count; i++) names.emplace_back(smelt_library_function_name(get(), i));
        return names;
    }
    // The function of that host name, "" for the only one; compiled at its first run.
    Function function(const std::string &name = "", const std::vector<Constant> &constants = {}) const {
        detail::check_count("function constants", constants.size(), SMELT_MAX_CONSTANTS);
        smelt_function_desc desc{};
        desc.name = name.empty() ? nullptr : name.c_str();
        for (std::size_t i = 0; i < constants.size(); i++) desc.constants[i] = constants[i].get();
        smelt_function *made = nullptr;
        detail::check(smelt_library_function(get(), &desc, &made));
        return Function::adopt(made);
    }

  private:
    using handle = detail::handle<smelt_library, smelt_library_retain, smelt_library_release>;
    void open(smelt_library_desc &desc, const CompileOptions &options) {
        std::vector<const char *> macros = detail::set_options(options, desc);
        smelt_library *made = nullptr;
        detail::check(smelt_library_create(&desc, &made));
        handle_ = handle(made);
    }
    handle handle_;
};

} // namespace smelt

#endif
