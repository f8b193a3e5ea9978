// array.hpp — smelt's arrays and errors in C++17. Include smelt.hpp, whose head describes both.
#ifndef SMELT_ARRAY_HPP
#define SMELT_ARRAY_HPP

#include <smelt/smelt.h>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace smelt {

class error : public std::runtime_error {
  public:
    error(smelt_status status, const std::string &message) : std::runtime_error(message), status_(status) {}
    smelt_status status() const noexcept { return status_; }

  private:
    smelt_status status_;
};

namespace detail {

inline void check(smelt_status status) {
    if (status != SMELT_OK) throw error(status, smelt_error());
}

[[noreturn]] inline void refuse(const std::string &message) {
    throw error(SMELT_ERROR_INVALID_ARGUMENT, message);
}

inline void check_count(const std::string &what, std::size_t count, std::size_t limit) {
    if (count > limit)
        throw error(SMELT_ERROR_LIMIT, what + ": " + std::to_string(count) + " are given, at most " +
                                           std::to_string(limit) + " are supported");
}

// One reference to an object of the C interface.
template <class T, T *(*retain)(T *), void (*release)(T *)> class handle {
  public:
    handle() = default;
    explicit handle(T *adopted) noexcept : pointer_(adopted) {}
    handle(const handle &other) noexcept : pointer_(other.pointer_ ? retain(other.pointer_) : nullptr) {}
    handle(handle &&other) noexcept : pointer_(std::exchange(other.pointer_, nullptr)) {}
    handle &operator=(handle other) noexcept {
        std::swap(pointer_, other.pointer_);
        return *this;
    }
    ~handle() { release(pointer_); }
    T *get() const noexcept { return pointer_; }

  private:
    T *pointer_ = nullptr;
};

template <class> constexpr bool unknown = false;

} // namespace detail

// ---- Element types ----------------------------------------------------------------------------

using Dtype = smelt_dtype;

inline constexpr Dtype bool_ = SMELT_BOOL;
inline constexpr Dtype uint8 = SMELT_UINT8;
inline constexpr Dtype uint16 = SMELT_UINT16;
inline constexpr Dtype uint32 = SMELT_UINT32;
inline constexpr Dtype uint64 = SMELT_UINT64;
inline constexpr Dtype int8 = SMELT_INT8;
inline constexpr Dtype int16 = SMELT_INT16;
inline constexpr Dtype int32 = SMELT_INT32;
inline constexpr Dtype int64 = SMELT_INT64;
inline constexpr Dtype float16 = SMELT_FLOAT16;
inline constexpr Dtype bfloat16 = SMELT_BFLOAT16;
inline constexpr Dtype float32 = SMELT_FLOAT32;
inline constexpr Dtype complex64 = SMELT_COMPLEX64;
inline constexpr Dtype float64 = SMELT_FLOAT64;

// The dtype of a C++ type. float16 and bfloat16 have no type of their own: their bits are uint16_t.
template <class T> constexpr Dtype dtype_of() {
    if constexpr (std::is_same_v<T, bool>)
        return bool_;
    else if constexpr (std::is_same_v<T, float>)
        return float32;
    else if constexpr (std::is_same_v<T, double>)
        return float64;
    else if constexpr (std::is_same_v<T, std::complex<float>>)
        return complex64;
    else if constexpr (std::is_integral_v<T> && sizeof(T) == 1)
        return std::is_signed_v<T> ? int8 : uint8;
    else if constexpr (std::is_integral_v<T> && sizeof(T) == 2)
        return std::is_signed_v<T> ? int16 : uint16;
    else if constexpr (std::is_integral_v<T> && sizeof(T) == 4)
        return std::is_signed_v<T> ? int32 : uint32;
    else if constexpr (std::is_integral_v<T> && sizeof(T) == 8)
        return std::is_signed_v<T> ? int64 : uint64;
    else
        static_assert(detail::unknown<T>, "arrays do not have elements of this type");
}

// ---- Arrays -----------------------------------------------------------------------------------

using Shape = std::vector<std::int64_t>;
using Strides = std::vector<std::int64_t>;

namespace detail {

inline smelt_shape c_shape(const Shape &shape) {
    check_count("dimensions of a shape", shape.size(), SMELT_MAX_DIMENSIONS);
    smelt_shape result{};
    result.ndim = static_cast<int>(shape.size());
    for (int i = 0; i < result.ndim && i < SMELT_MAX_DIMENSIONS; i++)
        result.size[i] = shape[static_cast<std::size_t>(i)];
    return result;
}

} // namespace detail

class array {
  public:
    array() = default;

    // A scalar. A double becomes float32, as a number in MLX does, unless a dtype is given.
    template <class T,
              class = std::enable_if_t<std::is_arithmetic_v<T> || std::is_same_v<T, std::complex<float>>>>
    explicit array(T value, Dtype dtype = std::is_same_v<T, double> ? float32 : dtype_of<T>())
        : array(&value, Shape{}, dtype) {}

    // Copies values in row-major order, one per element; converts them if a dtype is given.
    template <class T> array(const T *values, const Shape &shape, Dtype dtype = dtype_of<T>()) {
        smelt_array *made = nullptr;
        detail::check(smelt_array_from_values(dtype_of<T>(), detail::c_shape(shape), values, &made));
        handle_ = handle(made);
        if (dtype != dtype_of<T>()) *this = astype(dtype);
    }
    template <class T>
    array(const std::vector<T> &values, const Shape &shape, Dtype dtype = dtype_of<T>())
        : array(checked(values, shape), shape, dtype) {}
    template <class T>
    array(std::initializer_list<T> values, const Shape &shape, Dtype dtype = dtype_of<T>())
        : array(checked(values, shape), shape, dtype) {}
    template <class T>
    explicit array(std::initializer_list<T> values)
        : array(values.begin(), Shape{static_cast<std::int64_t>(values.size())}) {}
    template <class T>
    explicit array(const std::vector<T> &values)
        : array(values, Shape{static_cast<std::int64_t>(values.size())}) {}

    // Takes over a reference to an array of the C interface.
    static array adopt(smelt_array *made) {
        array result;
        result.handle_ = handle(made);
        return result;
    }
    // An array over the caller's memory, which must live as long as the array and its copies.
    template <class T> static array from_memory(T *values, const Shape &shape, Dtype dtype = dtype_of<T>()) {
        if (smelt_dtype_bytes(dtype) != sizeof(T))
            detail::refuse(std::string("dtype ") + smelt_dtype_name(dtype) + ": elements of " +
                           std::to_string(sizeof(T)) + " bytes are given, expected " +
                           std::to_string(smelt_dtype_bytes(dtype)));
        smelt_array *made = nullptr;
        detail::check(
            smelt_array_from_memory(dtype, detail::c_shape(shape), nullptr, values, nullptr, nullptr, &made));
        return adopt(made);
    }

    smelt_array *get() const noexcept { return handle_.get(); }

    Dtype dtype() const { return smelt_array_dtype(get()); }
    std::size_t ndim() const { return static_cast<std::size_t>(smelt_array_shape(get()).ndim); }
    Shape shape() const {
        smelt_shape found = smelt_array_shape(get());
        return Shape(found.size, found.size + found.ndim);
    }
    // One size; negative numbers count from the last.
    std::int64_t shape(int dimension) const {
        Shape all = shape();
        int count = static_cast<int>(all.size()), index = dimension < 0 ? dimension + count : dimension;
        if (index < 0 || index >= count)
            detail::refuse("dimension " + std::to_string(dimension) + ": the array has " +
                           std::to_string(count) + " dimensions");
        return all[static_cast<std::size_t>(index)];
    }
    // In elements.
    Strides strides() const {
        const std::int64_t *found = smelt_array_strides(get());
        return Strides(found, found + ndim());
    }
    std::size_t size() const { return static_cast<std::size_t>(smelt_array_size(get())); }
    std::size_t itemsize() const { return smelt_dtype_bytes(dtype()); }
    std::size_t nbytes() const { return size() * itemsize(); }
    std::string device() const { return smelt_array_device(get()); }
    bool is_contiguous() const { return smelt_array_is_contiguous(get()); }
    // Whether the work that writes it has ended.
    bool is_ready() const {
        bool ready = false;
        detail::check(smelt_array_is_ready(get(), &ready));
        return ready;
    }

    // The elements where they are, in the host's memory, with the array's strides. T is the dtype's type; for
    // float16 and bfloat16, uint16_t with their bits.
    template <class T> T *data() const {
        using element = std::remove_const_t<T>;
        bool bits = std::is_same_v<element, std::uint16_t> && (dtype() == float16 || dtype() == bfloat16);
        if (dtype() != dtype_of<element>() && !bits)
            detail::refuse(std::string("elements of ") + smelt_dtype_name(dtype()) + " are asked for as " +
                           smelt_dtype_name(dtype_of<element>()));
        if (device() != "cpu")
            detail::refuse("elements are on " + device() + "; to(\"cpu\") brings them to the host");
        return static_cast<T *>(smelt_array_data(get()));
    }
    // All elements in row-major order, converted and copied to the host as needed.
    template <class T> std::vector<T> to_vector() const {
        array dense = to("cpu").astype(dtype_of<T>());
        const T *first = dense.data<T>();
        return first ? std::vector<T>(first, first + dense.size()) : std::vector<T>();
    }
    // The one element.
    template <class T> T item() const {
        if (size() != 1)
            detail::refuse("item: the array has " + std::to_string(size()) + " elements, expected 1");
        return to_vector<T>()[0];
    }

    // A row-contiguous copy as another dtype; converted as by smelt_array_convert.
    array astype(Dtype dtype) const {
        smelt_array *made = nullptr;
        detail::check(smelt_array_convert(get(), dtype, &made));
        return adopt(made);
    }
    // Itself if it is on the device, else a copy there.
    array to(const std::string &device) const {
        smelt_array *made = nullptr;
        detail::check(smelt_array_to(get(), device.c_str(), nullptr, &made));
        return adopt(made);
    }

  private:
    using handle = detail::handle<smelt_array, smelt_array_retain, smelt_array_release>;

    // A pointer to the dense values, if they are as many as the shape's elements.
    template <class Values> static auto checked(const Values &values, const Shape &shape) {
        std::int64_t count = 1;
        for (std::int64_t size : shape) count *= size;
        if (count != static_cast<std::int64_t>(values.size()))
            detail::refuse("shape: it has " + std::to_string(count) + " elements, but " +
                           std::to_string(values.size()) + " values are given");
        return dense(values);
    }
    template <class T> static const T *dense(const std::vector<T> &values) {
        static_assert(!std::is_same_v<T, bool>,
                      "std::vector<bool> holds no bools: use an initializer list or an array");
        return values.data();
    }
    template <class T> static const T *dense(std::initializer_list<T> values) { return values.begin(); }

    handle handle_;
};

// New arrays on the host. `empty` has undefined contents.
inline array empty(const Shape &shape, Dtype dtype = float32) {
    smelt_array *made = nullptr;
    detail::check(smelt_array_create(dtype, detail::c_shape(shape), &made));
    return array::adopt(made);
}
inline array full(const Shape &shape, double value, Dtype dtype = float32) {
    array result = empty(shape, dtype);
    detail::check(smelt_array_fill(result.get(), value));
    return result;
}
inline array zeros(const Shape &shape, Dtype dtype = float32) {
    return full(shape, 0, dtype);
}
inline array ones(const Shape &shape, Dtype dtype = float32) {
    return full(shape, 1, dtype);
}
// 0, 1, 2 … in row-major order.
inline array arange(const Shape &shape, Dtype dtype = float32) {
    smelt_array *made = nullptr;
    detail::check(smelt_array_arange(dtype, detail::c_shape(shape), &made));
    return array::adopt(made);
}
namespace random {
inline array normal(const Shape &shape, Dtype dtype = float32, std::uint64_t seed = 0) {
    smelt_array *made = nullptr;
    detail::check(smelt_array_normal(dtype, detail::c_shape(shape), seed, &made));
    return array::adopt(made);
}
// Floats in [0, 1), integers over their full range.
inline array uniform(const Shape &shape, Dtype dtype = float32, std::uint64_t seed = 0) {
    smelt_array *made = nullptr;
    detail::check(smelt_array_uniform(dtype, detail::c_shape(shape), seed, &made));
    return array::adopt(made);
}
} // namespace random

// .npy files.
inline void save(const std::string &path, const array &values) {
    detail::check(smelt_array_write_npy(values.get(), path.c_str()));
}
inline array load(const std::string &path, Dtype dtype = SMELT_NO_DTYPE) {
    smelt_array *made = nullptr;
    detail::check(smelt_array_read_npy(path.c_str(), dtype, &made));
    return array::adopt(made);
}

} // namespace smelt

#endif
