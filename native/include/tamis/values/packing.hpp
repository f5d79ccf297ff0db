// How floats become integers in equal steps, CF's packing, and the kernels that do so for blocks of values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace tamis::values {

namespace detail {

// A compiler's own vector.
template <class T, std::size_t lanes>
struct VectorOf {
    typedef T Type __attribute__((vector_size(lanes * sizeof(T))));

    static Type of(T value) { return Type{} + value; }
};

}  // namespace detail

// A value that marks a missing one, and its code.
template <class Scalar>
struct MissingCode {
    Scalar mark;
    std::int32_t code;
};

// How values become codes: value = code * step + offset, where the offset is `-origin` steps.
template <class Scalar>
struct Packing {
    Scalar step, offset;
    double origin;           // the code of 0, which need not be among the codes
    std::int32_t low, high;  // codes of valid values
    double bound;            // of the error of each value
    bool zeros;              // whether no value but 0 may become 0
    std::span<const MissingCode<Scalar>> missing;
    std::int32_t nan_code;  // of NaN; `high` + 1 if NaN is refused
    // Smallest and largest valid value, which no other value may reach, and their codes.
    Scalar valid_low = -std::numeric_limits<Scalar>::infinity(), valid_high = std::numeric_limits<Scalar>::infinity();
    std::int32_t valid_low_code = std::numeric_limits<std::int32_t>::min(),
                 valid_high_code = std::numeric_limits<std::int32_t>::max();
};

struct Packed {
    double error = 0;             // the largest, of valid values
    std::size_t missing = 0;      // values
    std::ptrdiff_t refused = -1;  // index of the first value without a code; -1 if all have one
};

// Store the codes of a block of values, without branches. False if some value is none that such a block may have: then
// neither the codes nor what is `packed` count.
template <class Scalar, class Code>
using PackBlock = bool (*)(const Packing<Scalar>&, std::span<const Scalar> in, Code* out, Packed&);

template <class Scalar, class Code>
struct PackBlocks {
    PackBlock<Scalar, Code> plain;         // no value may be missing
    PackBlock<Scalar, Code> with_missing;  // those that are missing are NaN or equal the first mark
};

// The kernel of an instruction set, for both types of values and the three of codes.
struct PackKernel : PackBlocks<float, std::int8_t>,
                    PackBlocks<float, std::int16_t>,
                    PackBlocks<float, std::int32_t>,
                    PackBlocks<double, std::int8_t>,
                    PackBlocks<double, std::int16_t>,
                    PackBlocks<double, std::int32_t> {
    template <class Scalar, class Code>
    const PackBlocks<Scalar, Code>& blocks() const {
        return *this;
    }
};

extern const PackKernel portable_pack_kernel;
#ifdef TAMIS_AVX2
extern const PackKernel avx2_pack_kernel;
#endif
#ifdef TAMIS_AVX512
extern const PackKernel avx512_pack_kernel;
#endif

// The kernel for the instruction set of one of zfp's, which the environment may name.
const PackKernel& pack_kernel_like(const char* zfp_kernel);

}  // namespace tamis::values
