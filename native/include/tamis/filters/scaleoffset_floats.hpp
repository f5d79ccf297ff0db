// Floats in HDF5 filter 6: multiplied by a power of ten and rounded. Every operation below is libhdf5's, in its type
// and order: another one rounds otherwise and changes the bytes.
#pragma once

#include "tamis/filters/scaleoffset_plan.hpp"

namespace tamis::filters::scaleoffset {

template <class Float>
class Floats {
public:
    using Word = std::conditional_t<sizeof(Float) == 4, std::uint32_t, std::uint64_t>;
    using Value = Float;

    explicit Floats(const Params& params)
        : has_fill_(params.has_fill),
          fill_(std::bit_cast<Float>(static_cast<Word>(params.fill_bits))),
          scale_(std::pow(Float{10}, static_cast<Float>(params.factor))),
          near_(std::pow(Float{10}, -static_cast<Float>(params.factor))),
          near_in_double_(std::pow(10.0, -static_cast<double>(params.factor))) {}

    void see(Value value) {
        if (has_fill_ && std::fabs(static_cast<double>(value - fill_)) < near_in_double_) return;
        if (!any_) low_ = high_ = value;
        if (value > high_) high_ = value;
        if (value < low_) low_ = value;
        any_ = true;
    }
    Header header(const Params&) const {
        const Float range = std::round(scaled(high_) - scaled(low_));
        constexpr unsigned full = 8 * sizeof(Float);
        const Float limit = std::ldexp(Float{1}, full - 1);
        if (range > limit) return {full, 0};
        // NaN, and the limit itself, leave no room for the fill value either.
        const bool fits = range < limit;
        const auto span = fits ? static_cast<std::uint64_t>(range) + 1 : 0;
        return {fits ? ceiled_log2(span + has_fill_) : full, std::bit_cast<Word>(low_)};
    }
    bool refuses(Value value) const { return !std::isfinite(value) && !is_fill(value); }
    Word code(Value value, unsigned minbits) const {
        if (is_fill(value)) return static_cast<Word>(low_bits(minbits));
        return static_cast<Word>(rounded(scaled(value) - scaled(low_)));
    }

    void begin(const Header& header) { low_ = std::bit_cast<Float>(static_cast<Word>(header.minval)); }
    Value value(std::uint64_t code, unsigned minbits) const {
        if (has_fill_ && code == low_bits(minbits)) return fill_;
        return static_cast<Float>(static_cast<std::int64_t>(code)) / scale_ + low_;
    }

private:
    Float scaled(Value value) const { return value * scale_; }
    // libhdf5 knows a fill value by two bounds: that of `see` and this one.
    bool is_fill(Value value) const { return has_fill_ && std::fabs(value - fill_) < near_; }
    // llround, without a call; 2^63 where that has no answer, as on x86.
    static std::uint64_t rounded(Float number) {
        constexpr auto limit = static_cast<Float>(std::uint64_t{1} << 63);
        if (!(number >= -limit && number < limit)) return std::uint64_t{1} << 63;
        const auto whole = static_cast<std::int64_t>(number);
        const Float rest = number - static_cast<Float>(whole);  // exact
        return static_cast<std::uint64_t>(whole + (rest >= Float{0.5}) - (rest <= Float{-0.5}));
    }

    bool has_fill_, any_ = false;
    Float fill_, scale_, near_;
    double near_in_double_;
    Float low_ = 0, high_ = 0;
};

}  // namespace tamis::filters::scaleoffset
