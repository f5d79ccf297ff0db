// The part of `_native` that rounds values; src/tamis/rounding gives it a Python face.
//
// Arrays are C-contiguous buffers of native floats. The lock is released while many values are rounded.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "python/binding.hpp"
#include "tamis/values/extent.hpp"
#include "tamis/values/pack.hpp"
#include "tamis/values/quantize.hpp"
#include "tamis/values/unpack.hpp"

namespace tamis::python {

using namespace nb::literals;

namespace {

using values::Quantization;

constexpr int readable = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT;

struct AnyQuantizer {
    std::variant<values::Quantizer<float>, values::Quantizer<double>> quantizer;
};

Quantization quantization_of(const std::string& kind) {
    if (kind == "bitround") return Quantization::bitround;
    if (kind == "granular") return Quantization::granular;
    if (kind == "bitgroom") return Quantization::bitgroom;
    if (kind == "absolute") return Quantization::absolute;
    throw nb::value_error("expected bitround, granular, bitgroom or absolute");
}

// Least and largest number of a quantization. A step may be as small as the smallest number of the type, and its sum
// with the largest number that it has any effect on must be finite.
std::pair<int, int> range_of(Quantization quantization, int itemsize) {
    switch (quantization) {
        case Quantization::bitround:
            return {1, itemsize == 4 ? 23 : 52};
        case Quantization::absolute:
            return itemsize == 4 ? std::pair{-149, 103} : std::pair{-1074, 970};
        default:
            return {1, itemsize == 4 ? 6 : 15};
    }
}

AnyQuantizer make_quantizer(const std::string& kind, int number, int itemsize) {
    const Quantization quantization = quantization_of(kind);
    if (itemsize != 4 && itemsize != 8) throw nb::value_error("expected values of 4 or 8 bytes");
    const auto [least, most] = range_of(quantization, itemsize);
    if (number < least || number > most) throw nb::value_error("expected bits, digits or an exponent of the type");
    if (itemsize == 4) return {values::Quantizer<float>(quantization, number)};
    return {values::Quantizer<double>(quantization, number)};
}

template <class Scalar>
std::span<const Scalar> values_of(const Buffer& buffer) {
    return {static_cast<const Scalar*>((*buffer).buf), static_cast<std::size_t>((*buffer).len) / sizeof(Scalar)};
}

std::size_t round(const AnyQuantizer& any, nb::handle array, nb::handle out, nb::handle odd, nb::handle marks,
                  std::tuple<double, double> limits) {
    const Buffer in(array, readable), result(out, readable | PyBUF_WRITABLE), rows(odd, PyBUF_C_CONTIGUOUS),
        marked(marks, readable);
    if ((*in).len != (*result).len) throw nb::value_error("expected arrays of the same size");
    return std::visit(
        [&]<class Scalar>(const values::Quantizer<Scalar>& quantizer) {
            const char format = sizeof(Scalar) == 4 ? 'f' : 'd';
            for (const Buffer* buffer : {&in, &result, &marked})
                if (float_format(**buffer) != format) throw nb::type_error("expected arrays of the quantizer's type");
            const auto values = values_of<Scalar>(in);
            const auto first_is_odd = rows.bytes();
            if (first_is_odd.empty() ? !values.empty() : values.size() % first_is_odd.size() != 0)
                throw nb::value_error("expected rows of the same size");
            const values::Kept<Scalar> kept{values_of<Scalar>(marked), static_cast<Scalar>(std::get<0>(limits)),
                                            static_cast<Scalar>(std::get<1>(limits))};
            auto* const to = static_cast<Scalar*>((*result).buf);
            std::optional<Unlocked> unlocked;
            if (quick_worth_unlocking((*in).len)) unlocked.emplace();
            const std::size_t size = first_is_odd.empty() ? 0 : values.size() / first_is_odd.size();
            std::size_t held = 0;
            for (std::size_t row = 0; row < first_is_odd.size(); ++row)
                held += quantizer.round(values.subspan(row * size, size), to + row * size, first_is_odd[row], kept);
            return held;
        },
        any.quantizer);
}

double relative_error(nb::handle expected, nb::handle found) {
    const Buffer was(expected, readable), now(found, readable);
    const char format = float_format(*was);
    if (format == 0 || float_format(*now) != format || (*was).len != (*now).len)
        throw nb::type_error("expected two arrays of native float32 or of native float64, of the same size");
    std::optional<Unlocked> unlocked;
    if (quick_worth_unlocking((*was).len)) unlocked.emplace();
    return format == 'f' ? values::relative_error(values_of<float>(was), values_of<float>(now))
                         : values::relative_error(values_of<double>(was), values_of<double>(now));
}

// The numbers of a packing as Python has them.
struct PackingNumbers {
    double step, offset, origin;
    std::int32_t low, high;
    double bound;
    bool zeros;
};

using Limits =
    std::tuple<std::optional<std::pair<double, std::int32_t>>, std::optional<std::pair<double, std::int32_t>>>;

// Call `f` with the type of codes of 1, 2 or 4 bytes.
template <class F>
auto with_code_type(Py_ssize_t itemsize, F f) {
    switch (itemsize) {
        case 1:
            return f.template operator()<std::int8_t>();
        case 2:
            return f.template operator()<std::int16_t>();
        default:
            return f.template operator()<std::int32_t>();
    }
}

bool is_code_size(Py_ssize_t itemsize) { return itemsize == 1 || itemsize == 2 || itemsize == 4; }

template <class Scalar>
std::vector<values::MissingCode<Scalar>> missing_codes(const std::vector<std::pair<double, std::int32_t>>& marks) {
    std::vector<values::MissingCode<Scalar>> missing;
    for (const auto& [mark, code] : marks) missing.push_back({static_cast<Scalar>(mark), code});
    return missing;
}

template <class Scalar>
values::Packed pack_values(const Buffer& in, const Buffer& out, const PackingNumbers& numbers,
                           const std::vector<std::pair<double, std::int32_t>>& marks,
                           std::optional<std::int32_t> nan_code, const Limits& limits) {
    const std::vector<values::MissingCode<Scalar>> missing = missing_codes<Scalar>(marks);
    values::Packing<Scalar> packing{static_cast<Scalar>(numbers.step),
                                    static_cast<Scalar>(numbers.offset),
                                    numbers.origin,
                                    numbers.low,
                                    numbers.high,
                                    numbers.bound,
                                    numbers.zeros,
                                    missing,
                                    nan_code.value_or(numbers.high + 1)};
    const auto& [valid_low, valid_high] = limits;
    if (valid_low) {
        packing.valid_low = static_cast<Scalar>(valid_low->first);
        packing.valid_low_code = valid_low->second;
    }
    if (valid_high) {
        packing.valid_high = static_cast<Scalar>(valid_high->first);
        packing.valid_high_code = valid_high->second;
    }
    const auto values = values_of<Scalar>(in);
    const auto to = static_cast<std::size_t>((*out).len) / static_cast<std::size_t>((*out).itemsize);
    if (to != values.size()) throw nb::value_error("expected arrays of the same size");
    const values::PackKernel& kernel = values::pack_kernel_like(kernel_in_use().name);
    std::optional<Unlocked> unlocked;
    if (quick_worth_unlocking((*in).len)) unlocked.emplace();
    return with_code_type((*out).itemsize, [&]<class Code>() {
        return values::pack(kernel.blocks<Scalar, Code>(), packing, values, static_cast<Code*>((*out).buf));
    });
}

std::tuple<std::ptrdiff_t, double, std::size_t> pack(nb::handle array, nb::handle out,
                                                     std::tuple<double, double, double> line,
                                                     std::pair<std::int32_t, std::int32_t> codes, double bound,
                                                     bool zeros,
                                                     const std::vector<std::pair<double, std::int32_t>>& marks,
                                                     std::optional<std::int32_t> nan_code, const Limits& limits) {
    const Buffer in(array, readable), result(out, readable | PyBUF_WRITABLE);
    const char format = float_format(*in);
    const auto itemsize = (*result).itemsize;
    const auto least = -(std::int64_t{1} << (8 * itemsize - 1));
    if (format == 0 || !is_code_size(itemsize))
        throw nb::type_error("expected native float32 or float64, and room for codes of 1, 2 or 4 bytes");
    const auto fits = [&](std::int64_t code) { return code >= least && code < -least; };
    if (!fits(codes.first) || !fits(codes.second) || codes.first > codes.second ||
        codes.second == std::numeric_limits<std::int32_t>::max())
        throw nb::value_error("expected codes that the type has");
    const auto& [step, offset, origin] = line;
    const PackingNumbers numbers{step, offset, origin, codes.first, codes.second, bound, zeros};
    const auto packed = format == 'f' ? pack_values<float>(in, result, numbers, marks, nan_code, limits)
                                      : pack_values<double>(in, result, numbers, marks, nan_code, limits);
    return {packed.refused, packed.error, packed.missing};
}

void unpack(nb::handle codes, nb::handle out, std::pair<double, double> line,
            const std::vector<std::pair<double, std::int32_t>>& marks) {
    const Buffer in(codes, readable), result(out, readable | PyBUF_WRITABLE);
    const char format = float_format(*result);
    if (format == 0 || !is_code_size((*in).itemsize))
        throw nb::type_error("expected codes of 1, 2 or 4 bytes, and room for native float32 or float64");
    const auto count = static_cast<std::size_t>((*in).len / (*in).itemsize);
    if (count != static_cast<std::size_t>((*result).len / (*result).itemsize))
        throw nb::value_error("expected arrays of the same size");
    if (marks.size() > values::most_missing_codes)
        throw nb::value_error("expected at most two codes of missing values");
    const auto [step, offset] = line;
    const auto into = [&]<class Scalar>(Scalar* values) {
        const auto missing = missing_codes<Scalar>(marks);
        std::optional<Unlocked> unlocked;
        if (quick_worth_unlocking((*result).len)) unlocked.emplace();
        with_code_type((*in).itemsize, [&]<class Code>() {
            const std::span<const Code> all(static_cast<const Code*>((*in).buf), count);
            values::unpack(all, static_cast<Scalar>(step), static_cast<Scalar>(offset), std::span(missing), values);
        });
    };
    if (format == 'f')
        into(static_cast<float*>((*result).buf));
    else
        into(static_cast<double*>((*result).buf));
}

template <class Scalar>
std::tuple<double, double, std::vector<std::size_t>, bool> extent_of(const Buffer& in, const Buffer& marks) {
    const auto values = values_of<Scalar>(in), each_mark = values_of<Scalar>(marks);
    const auto marked = std::make_unique<bool[]>(each_mark.size());
    values::Extent<Scalar> found;
    {
        std::optional<Unlocked> unlocked;
        if (quick_worth_unlocking((*in).len)) unlocked.emplace();
        found = values::extent_of(values, each_mark, std::span(marked.get(), each_mark.size()));
    }
    std::vector<std::size_t> indices;
    for (std::size_t i = 0; i < each_mark.size(); ++i)
        if (marked[i]) indices.push_back(i);
    return {found.low, found.high, std::move(indices), found.has_nan};
}

std::tuple<double, double, std::vector<std::size_t>, bool> extent(nb::handle array, nb::handle marks) {
    const Buffer in(array, readable), marked(marks, readable);
    const char format = float_format(*in);
    if (format == 0 || float_format(*marked) != format)
        throw nb::type_error("expected two arrays of native float32 or of native float64");
    return format == 'f' ? extent_of<float>(in, marked) : extent_of<double>(in, marked);
}

}  // namespace

void bind_rounding(nb::module_& m) {
    nb::class_<AnyQuantizer>(m, "Quantizer", "A quantization for floats of one size: netCDF's, or to a step.")
        .def(nb::new_(&make_quantizer), "kind"_a, "number"_a, "itemsize"_a,
             "`kind` is bitround, granular, bitgroom or absolute; `number` counts bits or digits, or is the exponent "
             "of a\n"
             "step, a power of two.")
        .def("round", &round, "array"_a, "out"_a, "odd"_a, "marks"_a, "limits"_a,
             "Round values into `out`; missing ones, and those that would become missing or cross a limit, stay.\n\n"
             "`odd` has a byte for each row of the array: whether the index of its first value is odd. Returns the\n"
             "number of valid values that stay.");
    m.def("pack", &pack, "array"_a, "out"_a, "line"_a, "codes"_a, "bound"_a, "zeros"_a, "marks"_a, "nan_code"_a.none(),
          "limits"_a,
          "Store floats as integers in `out`: value = code * step + offset.\n\n"
          "`line` is the step, the offset, and the code that 0 would have; `codes` are the smallest and the largest\n"
          "code of a valid value; `marks` are values that mean missing, with their codes; `limits` are the smallest\n"
          "and the largest valid value, with their codes, or None. Each value is unpacked in its own type and in\n"
          "doubles, and both keep the bound. Returns the index of the first value for which no code does, or -1; the\n"
          "largest error; and the number of missing values.");
    m.def("unpack", &unpack, "codes"_a, "out"_a, "line"_a, "marks"_a,
          "Store the values of codes in `out`: code * step + offset, each operation rounded to its type.\n\n"
          "`line` is the step and the offset; `marks` are at most two values that mean missing, with their codes.");
    m.def("extent", &extent, "array"_a, "marks"_a,
          "Smallest and largest value of those that are neither NaN nor equal a mark; the indices of the marks that\n"
          "some value equals; and whether there is NaN. Without a valid value, the smallest is above the largest.");
    m.def("relative_error", &relative_error, "expected"_a, "found"_a,
          "Largest error relative to a value, infinite where NaN or an infinity changed.");
}

}  // namespace tamis::python
