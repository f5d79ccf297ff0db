// The part of `_native` that looks at values; src/tamis/accuracy/difference.py gives it a Python face.
//
// Arrays are C-contiguous buffers of native floats. The lock is released while many values are looked at.

#include "tamis/values/difference.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <bit>
#include <optional>
#include <string_view>
#include <tuple>

#include "python/binding.hpp"
#include "tamis/values/bins.hpp"
#include "tamis/values/bit_pairs.hpp"
#include "tamis/values/similarity.hpp"
#include "tamis/values/statistics.hpp"

namespace tamis::python {

using namespace nb::literals;

namespace {

template <class Scalar>
std::span<const Scalar> values_of(const Buffer& buffer) {
    return {static_cast<const Scalar*>((*buffer).buf), static_cast<std::size_t>((*buffer).len) / sizeof(Scalar)};
}

// The format of an array, without the byte order if it is that of this machine, as NumPy has it of types that h5py
// made.
std::string_view native_format(const Py_buffer& view) {
    std::string_view format = view.format == nullptr ? "" : view.format;
    constexpr char order = std::endian::native == std::endian::little ? '<' : '>';
    if (format.starts_with(order)) format.remove_prefix(1);
    return format;
}

bool is_int64(const Py_buffer& view) {
    const std::string_view format = native_format(view);
    return view.itemsize == 8 && (format == "l" || format == "q");
}

// Call `f` with a value of the arrays' type, which all of them must have.
template <class F, class... Buffers>
auto specialise(F f, const Buffer& first, const Buffers&... rest) {
    const char format = float_format(*first);
    if (format == 0 || ((float_format(*rest) != format) || ...))
        throw nb::type_error("expected arrays of native float32 or of native float64");
    std::optional<Unlocked> unlocked;
    if (quick_worth_unlocking((*first).len)) unlocked.emplace();
    return format == 'f' ? f(float{}) : f(double{});
}

constexpr int contiguous = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT;

std::tuple<double, std::size_t, bool> survey(nb::handle array, nb::handle marks) {
    const Buffer values(array, contiguous), marked(marks, contiguous);
    const auto found = specialise(
        [&]<class Scalar>(Scalar) { return values::survey(values_of<Scalar>(values), values_of<Scalar>(marked)); },
        values, marked);
    return {found.largest, found.missing, found.finite};
}

std::tuple<double, bool, std::size_t> compare(nb::handle expected, nb::handle found, nb::handle marks) {
    const Buffer was(expected, contiguous), now(found, contiguous), marked(marks, contiguous);
    if ((*was).len != (*now).len) throw nb::value_error("expected arrays of the same size");
    const auto difference = specialise(
        [&]<class Scalar>(Scalar) {
            return values::compare(values_of<Scalar>(was), values_of<Scalar>(now), values_of<Scalar>(marked));
        },
        was, now, marked);
    return {difference.error, difference.kept, difference.missing};
}

// Counts of 32 or 64 bits, the lowest first.
using Counts = std::vector<std::uint64_t>;

template <class Word>
std::tuple<std::uint64_t, Counts, Counts, Counts> counted(const Buffer& words, const bool* valid,
                                                          std::array<std::size_t, 3> extents) {
    const auto [outer, extent, inner] = extents;
    const auto found = [&] {
        const Unlocked unlocked;
        return values::bit_pairs(static_cast<const Word*>((*words).buf), valid, outer, extent, inner);
    }();
    const auto vector = [](const auto& counts) { return Counts(counts.begin(), counts.end()); };
    return {found.pair_count, vector(found.first), vector(found.second), vector(found.both)};
}

std::tuple<std::uint64_t, Counts, Counts, Counts> bit_pairs(nb::handle array, std::optional<nb::handle> valid,
                                                            std::array<std::size_t, 3> extents) {
    const Buffer words(array, contiguous);
    std::optional<Buffer> flags;
    if (valid) flags.emplace(*valid, contiguous);
    const char format = float_format(*words);
    const std::size_t itemsize = format == 'd' ? 8 : 4;
    std::size_t left = format == 0 ? 0 : static_cast<std::size_t>((*words).len) / itemsize;
    const std::size_t count = left;
    for (const std::size_t each : extents) {
        if (each == 0 || left % each != 0) throw nb::value_error("expected floats, as many as the extents say");
        left /= each;
    }
    if (left != 1 || (flags && (**flags).len != static_cast<Py_ssize_t>(count)))
        throw nb::value_error("expected floats, and flags, as many as the extents say");
    const bool* which = flags ? static_cast<const bool*>((**flags).buf) : nullptr;
    return itemsize == 8 ? counted<std::uint64_t>(words, which, extents)
                         : counted<std::uint32_t>(words, which, extents);
}

template <class T>
double similarity(const Buffer& first, const Buffer& second, const bool* present) {
    const auto rows = static_cast<std::size_t>((*first).shape[0]),
               columns = static_cast<std::size_t>((*first).shape[1]);
    const Unlocked unlocked;
    return values::Windows(static_cast<const T*>((*first).buf), static_cast<const T*>((*second).buf), present, rows,
                           columns)
        .mean_similarity();
}

double dssim(nb::handle first, nb::handle second, std::optional<nb::handle> present) {
    const Buffer one(first, contiguous), two(second, contiguous);
    std::optional<Buffer> flags;
    if (present) flags.emplace(*present, contiguous);
    const auto fits = [&](const Buffer& buffer) {
        return (*buffer).ndim == 2 && (*buffer).shape[0] == (*one).shape[0] && (*buffer).shape[1] == (*one).shape[1];
    };
    const char format = float_format(*one);
    if ((*one).ndim != 2 || !fits(two) || (flags && (!fits(*flags) || (**flags).itemsize != 1)) || format == 0 ||
        float_format(*two) != format)
        throw nb::value_error("expected two fields of floats, and flags, of one shape with two axes");
    const auto* const which = flags ? static_cast<const bool*>((**flags).buf) : nullptr;
    return format == 'd' ? similarity<double>(one, two, which) : similarity<float>(one, two, which);
}

// Call `f` with the values of an array of native float32, float64 or int64.
template <class F>
bool over_numbers(F f, const Buffer& buffer) {
    if (float_format(*buffer) == 'f') return f(values_of<float>(buffer));
    if (float_format(*buffer) == 'd') return f(values_of<double>(buffer));
    if (is_int64(*buffer)) return f(values_of<std::int64_t>(buffer));
    throw nb::type_error("expected an array of native float32, float64 or int64");
}

template <class Scalar>
nb::tuple sums_over(const Buffer& before, const Buffer& after, const Buffer& marks, bool moments) {
    const auto found = [&] {
        std::optional<Unlocked> unlocked;
        if (quick_worth_unlocking((*before).len)) unlocked.emplace();
        return values::statistics(values_of<Scalar>(before), values_of<Scalar>(after), values_of<Scalar>(marks),
                                  moments);
    }();
    const auto& sums = found.moments;
    return nb::make_tuple(found.count, found.low, found.high, found.largest, found.squares.mantissa,
                          found.squares.exponent, sums.mean[0], sums.mean[1], sums.square[0], sums.square[1],
                          sums.product);
}

nb::tuple statistics(nb::handle first, nb::handle second, nb::handle marked, bool moments) {
    const Buffer before(first, contiguous), after(second, contiguous), marks(marked, contiguous);
    const std::string_view format = native_format(*before);
    if (native_format(*after) != format || native_format(*marks) != format || (*before).len != (*after).len)
        throw nb::value_error("expected arrays of one type, the first two of one size");
    const auto over = [&]<class Scalar>(Scalar) { return sums_over<Scalar>(before, after, marks, moments); };
    switch (format.size() == 1 ? format[0] : 0) {
        case 'f':
            return over(float{});
        case 'd':
            return over(double{});
        case 'b':
            return over(std::int8_t{});
        case 'h':
            return over(std::int16_t{});
        case 'i':
            return over(std::int32_t{});
        case 'l':
        case 'q':
            return over(std::int64_t{});
        case 'B':
            return over(std::uint8_t{});
        case 'H':
            return over(std::uint16_t{});
        case 'I':
            return over(std::uint32_t{});
        case 'L':
        case 'Q':
            return over(std::uint64_t{});
        default:
            throw nb::type_error("expected arrays of native float32 or float64, or of integers");
    }
}

nb::tuple valid_errors(nb::handle first, nb::handle second, double zero) {
    const Buffer before(first, contiguous), after(second, contiguous);
    if ((*before).len != (*after).len) throw nb::value_error("expected arrays of the same size");
    const char format = float_format(*before);
    if (format == 0 || float_format(*after) != format)
        throw nb::type_error("expected arrays of native float32 or of native float64");
    const auto found = [&] {
        std::optional<Unlocked> unlocked;
        if (worth_unlocking((*before).len)) unlocked.emplace();
        return format == 'f' ? values::valid_errors(values_of<float>(before), values_of<float>(after), zero)
                             : values::valid_errors(values_of<double>(before), values_of<double>(after), zero);
    }();
    return nb::make_tuple(found.worst, found.largest, found.relative, found.stored_relative, found.zeros_changed,
                          found.squares.mantissa, found.squares.exponent);
}

void count_in_bins(nb::handle array, bool equal, int step, std::int64_t first, nb::handle counts) {
    const Buffer values(array, contiguous), counted(counts, contiguous | PyBUF_WRITABLE);
    if (!is_int64(*counted)) throw nb::type_error("expected counts of int64");
    if (step < (equal ? -1074 : 0) || step > (equal ? 1024 : 63)) throw nb::value_error("expected another step");
    const std::span<std::int64_t> out(static_cast<std::int64_t*>((*counted).buf),
                                      static_cast<std::size_t>((*counted).len) / sizeof(std::int64_t));
    const bool all = over_numbers(
        [&](auto numbers) {
            std::optional<Unlocked> unlocked;
            if (quick_worth_unlocking((*values).len)) unlocked.emplace();
            return equal ? values::count_in_bins(numbers, values::EqualBins(step), first, out)
                         : values::count_in_bins(numbers, values::OrderedBins(step), first, out);
        },
        values);
    if (!all) throw nb::value_error("expected values in the bins only");
}

}  // namespace

char float_format(const Py_buffer& view) {
    const std::string_view format = native_format(view);
    return format == "f" || format == "d" ? format[0] : '\0';
}

void bind_values(nb::module_& m) {
    m.def("bit_pairs", &bit_pairs, "values"_a, "valid"_a.none(), "extents"_a,
          "Number of pairs of valid neighbours along an axis, and how often each bit is set in the first, the\n"
          "second and both, starting with the lowest bit.\n\n"
          "`extents` are the numbers of values before, along and after the axis.");
    m.def("count_in_bins", &count_in_bins, "values"_a, "equal"_a, "step"_a, "first"_a, "counts"_a,
          "Count each value in its bin: bins of neighbouring floats or integers, or of equal width.\n\n"
          "A bin holds 2**step neighbours, or is 2**step wide; `first` is the number of the first bin.");
    m.def("dssim", &dssim, "first"_a, "second"_a, "present"_a.none(),
          "Data structural similarity of two fields of floats: the mean of all whole windows of 11 x 11 values\n"
          "around a present value; NaN if there are none.");
    m.def("statistics", &statistics, "before"_a, "after"_a, "marks"_a, "moments"_a,
          nb::sig(
              "def statistics(before: object, after: object, marks: object, moments: bool) -> tuple[int, int | float, "
              "int | float, int | float, float, int, float, float, float, float, float]"),
          "Of the values that are not missing before: number, minimum, maximum, largest error, sum of squared errors\n"
          "as mantissa and power of 4; and moments, if requested: both means, sums of squares and of products of\n"
          "deviations.");
    m.def("valid_errors", &valid_errors, "before"_a, "after"_a, "zero"_a,
          nb::sig("def valid_errors(before: object, after: object, zero: float) -> "
                  "tuple[int, float, float, float, int, float, int]"),
          "Of finite values before and after: index of the first with the largest error, that error, the largest\n"
          "relative to a value that is not `zero`, the largest as roundings bound it, number of zeros that changed,\n"
          "and the sum of squared errors as mantissa and power of 4.");
    m.def("survey", &survey, "array"_a, "marks"_a,
          "Largest magnitude of the finite values, how many are missing, and whether all are finite.");
    m.def("compare", &compare, "expected"_a, "found"_a, "marks"_a,
          "Largest absolute error, whether missing values were kept, and how many there were.");
}

}  // namespace tamis::python
