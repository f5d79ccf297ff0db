// The kernel for x86-64 with AVX-512 F, BW, DQ, VL, VBMI and VBMI2: that with AVX2, but for steps in which masks and
// shuffles of whole registers do more. Only this file is compiled for that instruction set.

#include "kernels/szip/avx2.hpp"
#include "kernels/szip/kernel.hpp"

namespace tamis::szip {

namespace {

struct Avx512 : Avx2Steps<Avx512> {
    // The bits whose numbers are bytes below 64.
    [[gnu::always_inline]] static std::uint64_t bits_of(__m128i numbers, bool sixteen) {
        const __m512i one = _mm512_set1_epi64(1);
        __m512i bits = _mm512_sllv_epi64(one, _mm512_cvtepu8_epi64(numbers));
        if (sixteen)
            bits = _mm512_or_si512(bits, _mm512_sllv_epi64(one, _mm512_cvtepu8_epi64(_mm_srli_si128(numbers, 8))));
        const __m256i four = _mm256_or_si256(_mm512_castsi512_si256(bits), _mm512_extracti64x4_epi64(bits, 1));
        const __m128i pair = _mm_or_si128(_mm256_castsi256_si128(four), _mm256_extracti128_si256(four, 1));
        return static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm_or_si128(pair, _mm_unpackhi_epi64(pair, pair))));
    }

    // As in avx2.hpp; the numbers of the ones of a word are compressed numbers of all its bits.
    template <unsigned group>
    [[gnu::always_inline]] static bool get_unary_group(Reader<Avx512>& reader, unsigned first, __m128i& high) {
        const std::uint64_t bits = reader.peek();
        const auto ones = static_cast<unsigned>(std::popcount(bits)), wanted = group - first;
        if (ones < wanted) return false;
        const auto end = static_cast<unsigned>(std::countr_zero(_pdep_u64(std::uint64_t{1} << (ones - wanted), bits)));
        const unsigned length = 64 - end;
        reader.skip(length);
        const __m128i from_last =
            _mm512_castsi512_si128(_mm512_maskz_compress_epi8(_cvtu64_mask64(bits >> end), numbers()));
        const __m128i backwards = group == 8 ? _mm_setr_epi8(7, 6, 5, 4, 3, 2, 1, 0, -1, -1, -1, -1, -1, -1, -1, -1)
                                             : _mm_setr_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
        __m128i place = _mm_shuffle_epi8(from_last, backwards);
        // A sample that is left out has its one in front of the others.
        if (first > 0) place = _mm_insert_epi8(place, static_cast<int>(length), 0);
        const __m128i before =
            _mm_or_si128(_mm_slli_si128(place, 1), _mm_cvtsi32_si128(static_cast<int>(length + first)));
        constexpr __mmask16 all = group == 8 ? 0xff : 0xffff;
        high = _mm_maskz_sub_epi8(all, before, _mm_add_epi8(place, _mm_set1_epi8(1)));
        return true;
    }

    // As in avx2.hpp; the bytes that a sample's bits are in go to a lane of their own.
    template <unsigned group, class Sample>
    [[gnu::always_inline]] static void join(const Reader<Avx512>& reader, std::size_t at, unsigned k, __m128i high,
                                            Sample* block) {
        const std::uint8_t* const bytes = reader.byte_at(at);
        const auto start = static_cast<int>(at % 8), shift = static_cast<int>(k);
        if constexpr (sizeof(Sample) == 1) {
            // in bounds: 16 × 5 bits and 7 more are in 11 bytes, and `reach` follow
            const __m256i lane = _mm256_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
            const __m256i bit = _mm256_add_epi16(_mm256_mullo_epi16(lane, _mm256_set1_epi16(static_cast<short>(k))),
                                                 _mm256_set1_epi16(static_cast<short>(start)));
            const __m256i byte = _mm256_srli_epi16(bit, 3);
            const __m256i pair = _mm256_add_epi8(_mm256_or_si256(byte, _mm256_slli_epi16(byte, 8)),
                                                 _mm256_set1_epi16(0x0001));  // the first byte is the high one
            const __m256i wide = _mm256_permutexvar_epi8(pair, _mm256_castsi128_si256(avx2::load128(bytes)));
            const __m256i left = _mm256_sllv_epi16(wide, _mm256_and_si256(bit, _mm256_set1_epi16(7)));
            const __m128i low = _mm256_cvtepi16_epi8(_mm256_srl_epi16(left, _mm_cvtsi32_si128(16 - shift)));
            const __m128i x = _mm_or_si128(_mm_sll_epi16(high, _mm_cvtsi32_si128(shift)), low);
            if constexpr (group == 8)
                _mm_storel_epi64(reinterpret_cast<__m128i*>(block), x);
            else
                _mm_storeu_si128(reinterpret_cast<__m128i*>(block), x);
        } else {
            // in bounds: 16 × 13 bits and 7 more are in 27 bytes
            const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
            const __m512i bit =
                _mm512_add_epi32(_mm512_mullo_epi16(lane, _mm512_set1_epi32(shift)), _mm512_set1_epi32(start));
            const __m512i four = _mm512_set1_epi32(0x00010203);  // the first byte is the highest
            const __m512i byte = _mm512_srli_epi32(bit, 3);
            const __m512i twice = _mm512_or_si512(byte, _mm512_slli_epi32(byte, 8));
            const __m512i index = _mm512_add_epi8(_mm512_or_si512(twice, _mm512_slli_epi32(twice, 16)), four);
            const __m512i wide = _mm512_permutexvar_epi8(index, _mm512_castsi256_si512(avx2::load256(bytes)));
            const __m512i left = _mm512_sllv_epi32(wide, _mm512_and_si512(bit, _mm512_set1_epi32(7)));
            const __m256i low = _mm512_cvtepi32_epi16(_mm512_srl_epi32(left, _mm_cvtsi32_si128(32 - shift)));
            const __m256i x =
                _mm256_or_si256(_mm256_sll_epi16(_mm256_cvtepu8_epi16(high), _mm_cvtsi32_si128(shift)), low);
            if constexpr (group == 8)
                _mm_storeu_si128(reinterpret_cast<__m128i*>(block), _mm256_castsi256_si128(x));
            else
                _mm256_storeu_si256(reinterpret_cast<__m256i*>(block), x);
        }
    }

private:
    static __m512i numbers() {
        alignas(64) static constexpr std::uint8_t each[64] = {
            0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
            22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
            44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
        return _mm512_load_si512(each);
    }
};

}  // namespace

const Kernel avx512_kernel = detail::kernel_of<Avx512>("avx512");

}  // namespace tamis::szip
