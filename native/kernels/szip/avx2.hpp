// The steps of the coder for AVX2, BMI1, BMI2, LZCNT and POPCNT, for samples of one and two bytes and the usual sizes
// of blocks. `Family` is a type that the kernel's file keeps to itself.
//
// `python benchmarks/szip.py` says what each kernel is worth.
#pragma once

#include <immintrin.h>

#include "tamis/szip/steps.hpp"

namespace tamis::szip {

namespace avx2 {

// A block of `pixels` samples has this many in a register.
template <class Sample>
inline constexpr bool has_vectors = sizeof(Sample) < 4;

constexpr bool is_usual(unsigned pixels) { return pixels == 8 || pixels == 16 || pixels == 32; }

[[gnu::always_inline]] inline __m128i load128(const void* in) {
    return _mm_loadu_si128(static_cast<const __m128i*>(in));
}
[[gnu::always_inline]] inline __m256i load256(const void* in) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(in));
}
[[gnu::always_inline]] inline __m128i fold(__m256i x) {
    return _mm_add_epi64(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
}
// The sum of two words.
[[gnu::always_inline]] inline std::uint64_t total(__m128i x) {
    return static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm_add_epi64(x, _mm_unpackhi_epi64(x, x))));
}

// Sums of bytes, in words.
[[gnu::always_inline]] inline __m128i sums(__m128i bytes) { return _mm_sad_epu8(bytes, _mm_setzero_si128()); }
[[gnu::always_inline]] inline __m256i sums(__m256i bytes) { return _mm256_sad_epu8(bytes, _mm256_setzero_si256()); }

// Low bytes of 16-bit numbers in the first word of each half, high bytes in the second.
[[gnu::always_inline]] inline __m128i by_place() {
    return _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
}
[[gnu::always_inline]] inline std::uint64_t total_of_places(__m128i x) {
    return static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm_add_epi64(x, _mm_slli_epi64(_mm_unpackhi_epi64(x, x), 8))));
}

[[gnu::always_inline]] inline __m128i shift_right8(__m128i x, unsigned k) {
    return _mm_and_si128(_mm_srl_epi16(x, _mm_cvtsi32_si128(static_cast<int>(k))),
                         _mm_set1_epi8(static_cast<char>(0xff >> k)));
}

// samples >> k as bytes, saturated, of 16 or of 8 samples, behind which are zeros.
template <unsigned pixels, class Sample>
[[gnu::always_inline]] inline __m128i high_bytes(const Sample* block, unsigned k) {
    if constexpr (sizeof(Sample) == 1) {
        const __m128i x = pixels == 8 ? _mm_loadl_epi64(reinterpret_cast<const __m128i*>(block)) : load128(block);
        return shift_right8(x, k);
    } else {
        const __m128i shift = _mm_cvtsi32_si128(static_cast<int>(k));
        const __m128i low = _mm_srl_epi16(load128(block), shift);
        const __m128i high = pixels == 8 ? _mm_setzero_si128() : _mm_srl_epi16(load128(block + 8), shift);
        return _mm_packus_epi16(low, high);
    }
}

// `Tries` of bytes below 128, of eight of them in each word.
[[gnu::always_inline]] inline __m128i three_sums(__m128i high) {
    const __m128i zero = _mm_setzero_si128();
    const __m128i half = _mm_and_si128(_mm_srli_epi16(high, 1), _mm_set1_epi8(0x7f));
    return _mm_or_si128(sums(high), _mm_or_si128(_mm_slli_epi64(sums(_mm_avg_epu8(high, zero)), 16),
                                                 _mm_slli_epi64(sums(_mm_avg_epu8(half, zero)), 32)));
}
[[gnu::always_inline]] inline __m256i three_sums(__m256i high) {
    const __m256i zero = _mm256_setzero_si256();
    const __m256i half = _mm256_and_si256(_mm256_srli_epi16(high, 1), _mm256_set1_epi8(0x7f));
    return _mm256_or_si256(sums(high), _mm256_or_si256(_mm256_slli_epi64(sums(_mm256_avg_epu8(high, zero)), 16),
                                                       _mm256_slli_epi64(sums(_mm256_avg_epu8(half, zero)), 32)));
}
// The sums of the words of each half.
[[gnu::always_inline]] inline __m128i fold_halves(__m256i x) {
    const __m128i low = _mm256_castsi256_si128(x), high = _mm256_extracti128_si256(x, 1);
    return _mm_add_epi64(_mm_unpacklo_epi64(low, high), _mm_unpackhi_epi64(low, high));
}

// Each byte becomes the sum of those up to it.
[[gnu::always_inline]] inline __m128i running_sums8(__m128i x) {
    x = _mm_add_epi8(x, _mm_slli_si128(x, 1));
    x = _mm_add_epi8(x, _mm_slli_si128(x, 2));
    x = _mm_add_epi8(x, _mm_slli_si128(x, 4));
    return _mm_add_epi8(x, _mm_slli_si128(x, 8));
}

[[gnu::always_inline]] inline __m256i running_sums16(__m256i x) {
    x = _mm256_add_epi16(x, _mm256_slli_si256(x, 2));
    x = _mm256_add_epi16(x, _mm256_slli_si256(x, 4));
    x = _mm256_add_epi16(x, _mm256_slli_si256(x, 8));
    const __m256i last = _mm256_shuffle_epi8(x, _mm256_set1_epi16(0x0f0e));
    return _mm256_add_epi16(x, _mm256_permute2x128_si256(last, last, 0x08));  // 0 to the first half
}

// The bits whose numbers are bytes below 64.
[[gnu::always_inline]] inline std::uint64_t bits_of(__m128i numbers, bool sixteen) {
    const __m256i one = _mm256_set1_epi64x(1);
    const auto four = [&](__m128i x) { return _mm256_sllv_epi64(one, _mm256_cvtepu8_epi64(x)); };
    __m256i bits = _mm256_or_si256(four(numbers), four(_mm_srli_si128(numbers, 4)));
    if (sixteen)
        bits =
            _mm256_or_si256(bits, _mm256_or_si256(four(_mm_srli_si128(numbers, 8)), four(_mm_srli_si128(numbers, 12))));
    const __m128i pair = _mm_or_si128(_mm256_castsi256_si128(bits), _mm256_extracti128_si256(bits, 1));
    return static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm_or_si128(pair, _mm_unpackhi_epi64(pair, pair))));
}

// The same bits of each number of a word.
template <class Sample>
[[gnu::always_inline]] inline std::uint64_t low_mask(unsigned bits) {
    return std::uint64_t{low_bits_of<Sample>(bits)} * (sizeof(Sample) == 1 ? 0x0101010101010101 : 0x0001000100010001);
}

// The samples of a word from the last to the first.
template <class Sample>
[[gnu::always_inline]] inline std::uint64_t reversed(std::uint64_t word) {
    if constexpr (sizeof(Sample) == 1) return zfp::byteswap(word);
    word = word >> 32 | word << 32;
    return (word >> 16 & 0x0000ffff0000ffff) | (word & 0x0000ffff0000ffff) << 16;
}

[[gnu::always_inline]] inline std::uint64_t load_big(const void* in) {
    std::uint64_t word;
    std::memcpy(&word, in, sizeof word);
    return zfp::byteswap(word);
}

// Samples of a word, the first one highest.
template <class Sample>
[[gnu::always_inline]] inline std::uint64_t first_highest(const Sample* samples) {
    std::uint64_t word;
    std::memcpy(&word, samples, sizeof word);
    return reversed<Sample>(word);
}

}  // namespace avx2

template <class Family>
struct Avx2Steps : Steps<Family> {
    using Plain = Steps<Family>;

    template <class Sample>
    [[gnu::always_inline]] static std::uint64_t sum(const Sample* block, unsigned pixels) {
        using namespace avx2;
        if constexpr (has_vectors<Sample>) {
            if (!is_usual(pixels)) return Plain::sum(block, pixels);
            if constexpr (sizeof(Sample) == 1) {
                if (pixels == 8) return total(sums(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(block))));
                if (pixels == 16) return total(sums(load128(block)));
                return total(fold(sums(load256(block))));
            } else {
                if (pixels == 8) return total_of_places(sums(_mm_shuffle_epi8(load128(block), by_place())));
                const __m256i places = _mm256_broadcastsi128_si256(by_place());
                __m256i x = sums(_mm256_shuffle_epi8(load256(block), places));
                if (pixels == 32) x = _mm256_add_epi64(x, sums(_mm256_shuffle_epi8(load256(block + 16), places)));
                return total_of_places(fold(x));
            }
        } else {
            return Plain::sum(block, pixels);
        }
    }

    // Two blocks at once, of which a register then has both sums.
    template <class Sample>
    [[gnu::always_inline]] static void try_all(const Sample* samples, unsigned blocks, unsigned pixels,
                                               Survey<Sample>& found) {
        if constexpr (avx2::has_vectors<Sample>) {
            if (pixels == 8) return try_pairs<8>(samples, blocks, found);
            if (pixels == 16) return try_pairs<16>(samples, blocks, found);
            if (pixels == 32) return try_pairs<32>(samples, blocks, found);
        }
        Plain::try_all(samples, blocks, pixels, found);
    }

    template <class Sample>
    [[gnu::always_inline]] static unsigned pair_numbers(const Sample* block, unsigned pixels, std::uint16_t* numbers) {
        if constexpr (avx2::has_vectors<Sample>) {
            if (!avx2::is_usual(pixels)) return Plain::pair_numbers(block, pixels, numbers);
            __m128i sums = pixels == 8 ? pair_numbers_of<8>(block, numbers) : pair_numbers_of<16>(block, numbers);
            if (pixels == 32) sums = _mm_add_epi32(sums, pair_numbers_of<16>(block + 16, numbers + 8));
            sums = _mm_add_epi32(sums, _mm_unpackhi_epi64(sums, sums));
            return static_cast<unsigned>(_mm_cvtsi128_si32(sums) + _mm_extract_epi32(sums, 1));
        } else {
            return Plain::pair_numbers(block, pixels, numbers);
        }
    }

    template <unsigned fixed>
    [[gnu::always_inline]] static void put_pairs(Writer<Family>& writer, Head head, const std::uint16_t* numbers,
                                                 unsigned count) {
        if constexpr (fixed == 8 || fixed == 16)
            put_unary_group<fixed>(writer, head, numbers, 0, 0);
        else
            Plain::template put_pairs<fixed>(writer, head, numbers, count);
    }

    template <class Sample>
    static void map(const Sample* samples, std::size_t count, Sample most, Sample* mapped) {
        if constexpr (avx2::has_vectors<Sample>) {
            constexpr std::size_t width = 32 / sizeof(Sample);
            // in bounds: `line_slack` samples follow, whose mapped values are not looked at
            for (std::size_t i = 1; i < count; i += width) {
                const __m256i last = avx2::load256(samples + i - 1), next = avx2::load256(samples + i);
                _mm256_storeu_si256(reinterpret_cast<__m256i*>(mapped + i), mapped_of<Sample>(last, next, most));
            }
            mapped[0] = 0;
        } else {
            Plain::map(samples, count, most, mapped);
        }
    }

    template <class Sample, unsigned fixed>
    [[gnu::always_inline]] static void put_split(Writer<Family>& writer, Head head, const Sample* block, unsigned first,
                                                 unsigned pixels, unsigned k) {
        if constexpr (avx2::has_vectors<Sample> && fixed > 0) {
            constexpr unsigned group = fixed == 8 ? 8 : 16;
            put_unary_group<group>(writer, head, block, first, k);
            if constexpr (fixed == 32) put_unary_group<group>(writer, {}, block + group, 0, k);
            if (k > 0) Family::put_low(writer, block, first, pixels, k);
        } else {
            Plain::template put_split<Sample, fixed>(writer, head, block, first, pixels, k);
        }
    }

    template <class Sample>
    [[gnu::always_inline]] static void put_low(Writer<Family>& writer, const Sample* block, unsigned first,
                                               unsigned pixels, unsigned bits) {
        constexpr unsigned width = 8 / sizeof(Sample);
        if (!avx2::has_vectors<Sample> || pixels % width != 0)
            return Plain::put_low(writer, block, first, pixels, bits);
        const std::uint64_t mask = avx2::low_mask<Sample>(bits);
        const unsigned count = width * bits;
        const auto part = [&](unsigned i) { return _pext_u64(avx2::first_highest(block + i), mask); };
        // A sample that is left out is 0 in its place.
        if (2 * count <= most_put && pixels % (2 * width) == 0) {
            // At most 7 bits, all in the low byte, which is the high one in a word with its bytes reversed.
            const std::uint64_t swapped = mask << (8 * sizeof(Sample) - 8);
            const auto two = [&](unsigned i) {
                return _pext_u64(avx2::load_big(block + i), swapped) << count |
                       _pext_u64(avx2::load_big(block + i + width), swapped);
            };
            writer.put(two(0), 2 * count - first * bits);
            for (unsigned i = 2 * width; i < pixels; i += 2 * width) writer.put(two(i), 2 * count);
        } else if (count <= most_put) {
            writer.put(part(0), count - first * bits);
            for (unsigned i = width; i < pixels; i += width) writer.put(part(i), count);
        } else {  // never with a sample left out: only verbatim samples are so wide
            for (unsigned i = 0; i < pixels; i += width) {
                const std::uint64_t word = part(i);
                if (count == 64) {
                    writer.put64(word);
                } else {
                    writer.put(word >> 32, count - 32);
                    writer.put(word & 0xffffffff, 32);
                }
            }
        }
    }

    template <class Sample>
    static void get_low(Reader<Family>& reader, Sample* block, unsigned pixels, unsigned bits) {
        constexpr unsigned width = 8 / sizeof(Sample);
        if (!avx2::has_vectors<Sample> || pixels % width != 0) return Plain::get_low(reader, block, pixels, bits);
        const std::uint64_t mask = avx2::low_mask<Sample>(bits);
        const unsigned count = width * bits;
        for (unsigned i = 0; i < pixels; i += width) {
            // in bounds: as in `peek_at`
            const std::uint64_t word = reader.peek() | (count > Reader<Family>::peeked ? reader.ninth_byte() : 0);
            const std::uint64_t samples = avx2::reversed<Sample>(_pdep_u64(word >> (64 - count), mask));
            std::memcpy(block + i, &samples, sizeof samples);
            reader.skip(count);
        }
    }

    template <class Sample, unsigned fixed>
    [[gnu::always_inline]] static bool get_split(Reader<Family>& reader, Sample* block, unsigned first, unsigned pixels,
                                                 unsigned k, unsigned bits) {
        if constexpr (avx2::has_vectors<Sample> && fixed > 0) {
            constexpr unsigned group = fixed == 8 ? 8 : 16;
            const Sample most = low_bits_of<Sample>(bits - k);
            __m128i high[2];
            if (!Family::template get_unary_group<group>(reader, first, high[0])) [[unlikely]]
                return Plain::template get_split<Sample, fixed>(reader, block, first, pixels, k, bits);
            if (!is_at_most(high[0], most)) return false;
            if constexpr (fixed == 32) {
                if (!Family::template get_unary_group<group>(reader, 0, high[1])) [[unlikely]]
                    return get_split_rest(reader, high[0], block, first, k, most);
                if (!is_at_most(high[1], most)) return false;
            }
            reader.ensure();
            const std::size_t at = reader.at() - first * k;
            const Sample reference = block[0];
            Family::template join<group>(reader, at, k, high[0], block);
            if constexpr (fixed == 32) Family::template join<group>(reader, at + group * k, k, high[1], block + group);
            if (first > 0) block[0] = reference;
            reader.skip((fixed - first) * k);
            return true;
        } else {
            return Plain::template get_split<Sample, fixed>(reader, block, first, pixels, k, bits);
        }
    }

    template <class Sample>
    static void unmap(const Sample* mapped, std::size_t count, Sample most, Sample* samples) {
        if constexpr (sizeof(Sample) == 1)
            unmap8(mapped, count, most, samples);
        else if constexpr (sizeof(Sample) == 2)
            unmap16(mapped, count, most, samples);
        else
            Plain::unmap(mapped, count, most, samples);
    }

    // The unary parts of 8 or 16 samples, as bytes; false, and nothing is read, where they are longer than a word.
    template <unsigned group>
    [[gnu::always_inline]] static bool get_unary_group(Reader<Family>& reader, unsigned first, __m128i& high) {
        const std::uint64_t bits = reader.peek();
        const auto ones = static_cast<unsigned>(std::popcount(bits)), wanted = group - first;
        if (ones < wanted) return false;
        const auto end = static_cast<unsigned>(std::countr_zero(_pdep_u64(std::uint64_t{1} << (ones - wanted), bits)));
        reader.skip(64 - end);
        // From the last one on: a sample is the zeros in front of its one.
        std::uint64_t words[2] = {};
        std::uint64_t left = bits >> end;
        unsigned at = 0;
        for (unsigned i = group; i-- > 1;) {
            left &= left - 1;
            const unsigned next = left != 0 || i > 1 ? static_cast<unsigned>(std::countr_zero(left)) : 64 - end;
            words[i / 8] = words[i / 8] << 8 | (next - at - 1);
            at = next;
        }
        words[0] = words[0] << 8 | (first > 0 ? 0 : 63 - end - at);
        high = _mm_set_epi64x(static_cast<long long>(words[1]), static_cast<long long>(words[0]));
        return true;
    }

    [[gnu::always_inline]] static bool is_at_most(__m128i bytes, unsigned most) {
        const __m128i limit = _mm_set1_epi8(static_cast<char>(std::min(most, 255u)));
        return _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_max_epu8(bytes, limit), limit)) == 0xffff;
    }

    // Samples of their unary parts and the bits from `at` on.
    template <unsigned group, class Sample>
    [[gnu::always_inline]] static void join(const Reader<Family>& reader, std::size_t at, unsigned k, __m128i high,
                                            Sample* block) {
        constexpr unsigned width = 8 / sizeof(Sample);
        const std::uint64_t mask = avx2::low_mask<Sample>(k);
        const unsigned count = width * k, unused = (64 - count) & 63;
        const auto word = [&](unsigned i) {
            return static_cast<long long>(_pdep_u64(reader.peek_at(at + i * count) >> unused, mask));
        };
        const __m128i shift = _mm_cvtsi32_si128(static_cast<int>(k));
        if constexpr (sizeof(Sample) == 1) {
            const __m128i low = group == 8 ? _mm_cvtsi64_si128(word(0)) : _mm_set_epi64x(word(1), word(0));
            const __m128i reversed = _mm_setr_epi8(7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8);
            const __m128i x = _mm_or_si128(_mm_sll_epi16(high, shift), _mm_shuffle_epi8(low, reversed));
            if constexpr (group == 8)
                _mm_storel_epi64(reinterpret_cast<__m128i*>(block), x);
            else
                _mm_storeu_si128(reinterpret_cast<__m128i*>(block), x);
        } else {
            const __m128i reversed = _mm_setr_epi8(6, 7, 4, 5, 2, 3, 0, 1, 14, 15, 12, 13, 10, 11, 8, 9);
            const __m128i low = _mm_shuffle_epi8(_mm_set_epi64x(word(1), word(0)), reversed);
            _mm_storeu_si128(reinterpret_cast<__m128i*>(block),
                             _mm_or_si128(_mm_sll_epi16(_mm_cvtepu8_epi16(high), shift), low));
            if constexpr (group == 16) {
                const __m128i more = _mm_shuffle_epi8(_mm_set_epi64x(word(3), word(2)), reversed);
                const __m128i rest = _mm_cvtepu8_epi16(_mm_srli_si128(high, 8));
                _mm_storeu_si128(reinterpret_cast<__m128i*>(block + 8), _mm_or_si128(_mm_sll_epi16(rest, shift), more));
            }
        }
    }

    [[gnu::always_inline]] static std::uint64_t bits_of(__m128i numbers, bool sixteen) {
        return avx2::bits_of(numbers, sixteen);
    }

protected:
    template <class Sample>
    [[gnu::always_inline]] static __m256i mapped_of(__m256i last, __m256i next, Sample most) {
        if constexpr (sizeof(Sample) == 1) {
            const __m256i near =
                _mm256_min_epu8(last, _mm256_sub_epi8(_mm256_set1_epi8(static_cast<char>(most)), last));
            const __m256i distance = _mm256_or_si256(_mm256_subs_epu8(last, next), _mm256_subs_epu8(next, last));
            const __m256i up = _mm256_cmpeq_epi8(_mm256_max_epu8(next, last), next);
            // 2 × distance, and one less downwards
            const __m256i both =
                _mm256_add_epi8(_mm256_add_epi8(distance, distance), _mm256_andnot_si256(up, _mm256_set1_epi8(-1)));
            const __m256i is_near = _mm256_cmpeq_epi8(_mm256_max_epu8(distance, near), near);
            return _mm256_blendv_epi8(_mm256_add_epi8(near, distance), both, is_near);
        } else {
            const __m256i near =
                _mm256_min_epu16(last, _mm256_sub_epi16(_mm256_set1_epi16(static_cast<short>(most)), last));
            const __m256i distance = _mm256_or_si256(_mm256_subs_epu16(last, next), _mm256_subs_epu16(next, last));
            const __m256i up = _mm256_cmpeq_epi16(_mm256_max_epu16(next, last), next);
            const __m256i both =
                _mm256_add_epi16(_mm256_add_epi16(distance, distance), _mm256_andnot_si256(up, _mm256_set1_epi16(-1)));
            const __m256i is_near = _mm256_cmpeq_epi16(_mm256_max_epu16(distance, near), near);
            return _mm256_blendv_epi8(_mm256_add_epi16(near, distance), both, is_near);
        }
    }

    template <unsigned pixels, class Sample>
    [[gnu::always_inline]] static void try_pairs(const Sample* samples, unsigned blocks, Survey<Sample>& found) {
        unsigned i = 0;
        for (; i + 2 <= blocks; i += 2) {
            const __m128i both = try_pair<pixels>(samples + i * pixels, found.k[i], found.k[i + 1]);
            _mm_storeu_si128(reinterpret_cast<__m128i*>(found.tries + i), both);
        }
        if (i < blocks) found.tries[i] = Plain::tries(samples + i * pixels, pixels, found.k[i]);
    }
    template <unsigned pixels, class Sample>
    [[gnu::always_inline]] static __m128i try_pair(const Sample* first, unsigned k, unsigned next_k) {
        using namespace avx2;
        const Sample* const next = first + pixels;
        if constexpr (pixels == 8) {
            return three_sums(_mm_unpacklo_epi64(high_bytes<8>(first, k), high_bytes<8>(next, next_k)));
        } else if constexpr (pixels == 16) {
            return fold_halves(three_sums(_mm256_set_m128i(high_bytes<16>(next, next_k), high_bytes<16>(first, k))));
        } else {
            const auto of_block = [](const Sample* block, unsigned shift) {
                return three_sums(_mm256_set_m128i(high_bytes<16>(block + 16, shift), high_bytes<16>(block, shift)));
            };
            const __m256i one = of_block(first, k), two = of_block(next, next_k);
            return fold(_mm256_add_epi64(_mm256_unpacklo_epi64(one, two), _mm256_unpackhi_epi64(one, two)));
        }
    }

    // Of 4 or 8 pairs; their sums are those of the four lanes.
    template <unsigned group, class Sample>
    [[gnu::always_inline]] static __m128i pair_numbers_of(const Sample* block, std::uint16_t* numbers) {
        const __m128i bytes = avx2::high_bytes<group>(block, 0), one = _mm_set1_epi16(1);
        const __m128i sum = _mm_maddubs_epi16(bytes, _mm_set1_epi8(1)), second = _mm_srli_epi16(bytes, 8);
        const __m128i triangle = _mm_srli_epi16(_mm_mullo_epi16(sum, _mm_add_epi16(sum, one)), 1);
        const __m128i number = _mm_add_epi16(triangle, second);
        if constexpr (group == 8)
            _mm_storel_epi64(reinterpret_cast<__m128i*>(numbers), number);
        else
            _mm_storeu_si128(reinterpret_cast<__m128i*>(numbers), number);
        return _mm_madd_epi16(number, one);
    }

    template <unsigned group, class Sample>
    [[gnu::always_inline]] static void put_unary_group(Writer<Family>& writer, Head head, const Sample* block,
                                                       unsigned first, unsigned k) {
        __m128i lengths = _mm_add_epi8(avx2::high_bytes<group>(block, k), _mm_set1_epi8(1));
        if (first > 0) lengths = _mm_insert_epi8(lengths, 0, 0);
        const __m128i ends = avx2::running_sums8(lengths);
        const auto length = static_cast<unsigned>(_mm_extract_epi8(ends, group - 1));
        // A block's unary parts have at most 3 bits for each sample, since a larger k were shorter else, or the
        // verbatim option. So only half of a block of 32 may be longer than a word, and none longer than a byte says.
        if (length + head.count > most_put) [[unlikely]]
            return Plain::put_unaries(writer, head, block, first, group, k);
        const __m128i numbers = _mm_sub_epi8(_mm_set1_epi8(static_cast<char>(length)), ends);
        const std::uint64_t bits = Family::bits_of(numbers, group == 16) & low_bits_of<std::uint64_t>(length);
        writer.put(head.bits << length | bits, head.count + length);
    }

    // A block of 32 whose second half is too long for a word.
    template <class Sample>
    static bool get_split_rest(Reader<Family>& reader, __m128i high, Sample* block, unsigned first, unsigned k,
                               Sample most) {
        alignas(16) std::uint8_t bytes[16];
        _mm_store_si128(reinterpret_cast<__m128i*>(bytes), high);
        for (unsigned i = first; i < 16; ++i) block[i] = static_cast<Sample>(bytes[i] << k);
        return Plain::get_unaries(reader, block, 16, 32, k, most) && Plain::add_low(reader, block, first, 32, k);
    }

    // Away from the ends of the range, samples are running sums of steps. From the first one that is not, the rest of a
    // register is done one by one.
    static void unmap16(const std::uint16_t* mapped, std::size_t count, std::uint16_t most, std::uint16_t* samples) {
        const __m256i zero = _mm256_setzero_si256(), one = _mm256_set1_epi16(1);
        const __m256i tops = _mm256_set1_epi16(static_cast<short>(most));
        __m256i last = _mm256_set1_epi16(static_cast<short>(samples[0]));
        for (std::size_t i = 0; i < count; i += 16) {
            const __m256i value = avx2::load256(mapped + i);
            const __m256i step =
                _mm256_xor_si256(_mm256_srli_epi16(value, 1), _mm256_sub_epi16(zero, _mm256_and_si256(value, one)));
            const __m256i rise = avx2::running_sums16(step);
            const __m256i sample = _mm256_add_epi16(last, rise), before = _mm256_sub_epi16(sample, step);
            const __m256i near = _mm256_min_epu16(before, _mm256_sub_epi16(tops, before));
            const __m256i half = _mm256_avg_epu16(value, zero);
            const __m256i is_near = _mm256_cmpeq_epi16(_mm256_max_epu16(half, near), near);
            const int near_bytes = _mm256_movemask_epi8(is_near);
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(samples + i), sample);
            if (near_bytes == -1) [[likely]] {
                const __m256i end = _mm256_shuffle_epi8(rise, _mm256_set1_epi16(0x0f0e));
                last = _mm256_add_epi16(last, _mm256_permute2x128_si256(end, end, 0x11));
            } else {
                const auto good = static_cast<unsigned>(std::countr_one(static_cast<unsigned>(near_bytes))) / 2;
                Plain::unmap_from(mapped, std::max<std::size_t>(i + good, 1), i + 16, most, samples);
                last = _mm256_set1_epi16(static_cast<short>(samples[i + 15]));
            }
        }
    }

    static void unmap8(const std::uint8_t* mapped, std::size_t count, std::uint8_t most, std::uint8_t* samples) {
        const __m128i zero = _mm_setzero_si128(), one = _mm_set1_epi8(1);
        const __m128i tops = _mm_set1_epi8(static_cast<char>(most));
        __m128i last = _mm_set1_epi8(static_cast<char>(samples[0]));
        for (std::size_t i = 0; i < count; i += 16) {
            const __m128i value = avx2::load128(mapped + i);
            const __m128i step =
                _mm_xor_si128(avx2::shift_right8(value, 1), _mm_sub_epi8(zero, _mm_and_si128(value, one)));
            const __m128i rise = avx2::running_sums8(step);
            const __m128i sample = _mm_add_epi8(last, rise), before = _mm_sub_epi8(sample, step);
            const __m128i near = _mm_min_epu8(before, _mm_sub_epi8(tops, before));
            const __m128i half = _mm_avg_epu8(value, zero);
            const __m128i is_near = _mm_cmpeq_epi8(_mm_max_epu8(half, near), near);
            const int near_bytes = _mm_movemask_epi8(is_near);
            _mm_storeu_si128(reinterpret_cast<__m128i*>(samples + i), sample);
            if (near_bytes == 0xffff) [[likely]] {
                last = _mm_add_epi8(last, _mm_shuffle_epi8(rise, _mm_set1_epi8(15)));
            } else {
                const auto good = static_cast<unsigned>(std::countr_one(static_cast<unsigned>(near_bytes)));
                Plain::unmap_from(mapped, std::max<std::size_t>(i + good, 1), i + 16, most, samples);
                last = _mm_set1_epi8(static_cast<char>(samples[i + 15]));
            }
        }
    }
};

}  // namespace tamis::szip
