// Bit planes of two blocks of 64 coefficients, and their code by PDEP and PEXT.
//
// The code of a plane (plane_code.hpp) after its n plain bits is, per coefficient from n on, up to the last one that
// is 1: a group bit 1 if the coefficient before it was 1 (or it is the first), and its value; then a group bit 0. Give
// each coefficient two slots, group bit below value. Which slots are sent (P) and what they hold (V) are spread bits:
// with r the plane above n, h its length and D = r spread to even places,
//
//     P = (4D + 1) | odd places below 2h      V = 2D | even places below 2h
//
// The terminating group bit is slot 2h, already in P; all beyond slot 2(64 - n) - 2 is implied and cut off. PEXT packs
// V by P: no branch, whatever the runs are. 13 cycles a plane. Against counting zeros: 1.13 to 1.33 times as fast (t3,
// accuracy 1e-3 and 1e-6).
#pragma once

#include "kernels/avx2/bytes.hpp"
#include "tamis/zfp/plane_code.hpp"

namespace tamis::zfp::avx2 {

inline constexpr std::uint64_t even_places = 0x5555555555555555, odd_places = ~even_places;

[[gnu::always_inline]] inline unsigned popcount(std::uint64_t x) { return static_cast<unsigned>(_mm_popcnt_u64(x)); }
[[gnu::always_inline]] inline unsigned bit_length(std::uint64_t x) { return 64 - static_cast<unsigned>(_lzcnt_u64(x)); }

// The bits of `x` under `mask`, packed: PEXT or, where that is slow, each one to the place that the mask's bits below
// it give.
template <class Kernel>
[[gnu::always_inline]] inline std::uint64_t extract(std::uint64_t x, std::uint64_t mask) {
    if constexpr (Kernel::fast_pext) {
        return _pext_u64(x, mask);
    } else {
        std::uint64_t packed = 0;
        for (std::uint64_t ones = x & mask; ones != 0; ones &= ones - 1)
            packed |= std::uint64_t{1} << popcount(_bzhi_u64(mask, zfp::detail::trailing_zeros(ones)));
        return packed;
    }
}

// What opens a block, and a group bit 0 for each of the empty planes on top of it.
[[gnu::always_inline]] inline void put_opening(BitWriter& writer, std::uint64_t bits, unsigned nbits, unsigned empty) {
    if (nbits + empty <= 56) [[likely]]
        return writer.put(bits, nbits + empty);
    writer.put(bits, nbits);
    writer.put_zeros(empty);
}

// A plane whose ones reach further than 31 coefficients past n: the same slots, 28 coefficients at a time. `first` says
// that the slot of the next group bit is sent.
template <class Kernel>
void encode_long_run(BitWriter& writer, std::uint64_t rest, unsigned h, unsigned left) {
    std::uint64_t first = 1;
    for (; h > 28; h -= 28, left -= 28, rest >>= 28) {
        const std::uint64_t part = _bzhi_u64(rest, 28);
        const std::uint64_t sent = _bzhi_u64(_pdep_u64(2 * part + first, even_places) | odd_places, 56);
        writer.put(_pext_u64(_pdep_u64(part, odd_places) | even_places, sent), popcount(sent));
        first = part >> 27;
    }
    const std::uint64_t below = _bzhi_u64(~std::uint64_t{0}, 2 * h);
    const std::uint64_t groups = _bzhi_u64(_pdep_u64(2 * rest + first, even_places), 2 * h + 1);
    const std::uint64_t sent = _bzhi_u64(groups | (below & odd_places), 2 * left - 1);
    const std::uint64_t code = _pext_u64(_pdep_u64(rest, odd_places) | (below & even_places), sent);
    writer.put_wide(code, popcount(sent));
}

// Write planes k - 1 … lowest, of which `words` has all; returns the new n. Stops once bit `end` is passed.
template <class Kernel>
    requires(Kernel::fast_pext)
[[gnu::always_inline]] inline unsigned encode_planes(BitWriter& writer, const std::uint64_t* words, unsigned k,
                                                     unsigned lowest, unsigned n, std::size_t end) {
    for (; k > lowest && n < 64 && writer.position() < end; --k) {
        const std::uint64_t plane = words[k - 1], rest = plane >> n, plain = _bzhi_u64(plane, n);
        const unsigned h = bit_length(rest);
        if (h <= 31) [[likely]] {
            const std::uint64_t spread = _pdep_u64(rest, even_places), below = _bzhi_u64(~std::uint64_t{0}, 2 * h);
            const std::uint64_t sent = _bzhi_u64((4 * spread + 1) | (below & odd_places), 127 - 2 * n);
            const std::uint64_t code = _pext_u64(2 * spread | (below & even_places), sent);
            const unsigned length = popcount(sent);
            if (n + length <= 56) [[likely]] {
                writer.put(plain | code << n, n + length);
            } else {
                writer.put_wide(plain, n);
                writer.put_wide(code, length);
            }
        } else {
            writer.put_wide(plain, n);
            encode_long_run<Kernel>(writer, rest, h, 64 - n);
        }
        n += h;
    }
    for (; k > lowest && writer.position() < end; --k) writer.put_wide(words[k - 1], 64);
    return n;
}

// Where PDEP and PEXT are slow, by counting zeros.
template <class Kernel>
    requires(!Kernel::fast_pext)
[[gnu::always_inline]] inline unsigned encode_planes(BitWriter& writer, const std::uint64_t* words, unsigned k,
                                                     unsigned lowest, unsigned n, std::size_t end) {
    for (; k > lowest && writer.position() < end; --k) n = zfp::encode_plane<64>(writer, words[k - 1], n);
    return n;
}

// Bytes of 64 coefficients of each of two blocks, in the order of the stream ↔ their eight planes, two to a register
// half. Transposed bits leave byte m of each 64-bit word to plane m; unpacking bytes, then words, collects them.
[[gnu::always_inline]] inline void bytes_to_planes(__m256i (&v)[4]) {
    for (__m256i& each : v) each = transpose_bits(each);
    const __m256i a = _mm256_unpacklo_epi8(v[0], v[1]), b = _mm256_unpackhi_epi8(v[0], v[1]);
    const __m256i c = _mm256_unpacklo_epi8(v[2], v[3]), d = _mm256_unpackhi_epi8(v[2], v[3]);
    const __m256i ab = _mm256_unpacklo_epi8(a, b), AB = _mm256_unpackhi_epi8(a, b);
    const __m256i cd = _mm256_unpacklo_epi8(c, d), CD = _mm256_unpackhi_epi8(c, d);
    v[0] = _mm256_unpacklo_epi32(ab, cd), v[1] = _mm256_unpackhi_epi32(ab, cd);
    v[2] = _mm256_unpacklo_epi32(AB, CD), v[3] = _mm256_unpackhi_epi32(AB, CD);
}

[[gnu::always_inline]] inline void planes_to_bytes(__m256i (&v)[4]) {
    const __m256i pairs =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
    for (__m256i& each : v) each = _mm256_shuffle_epi8(each, pairs);
    const __m256i ab = _mm256_unpacklo_epi16(v[0], v[1]), AB = _mm256_unpackhi_epi16(v[0], v[1]);
    const __m256i cd = _mm256_unpacklo_epi16(v[2], v[3]), CD = _mm256_unpackhi_epi16(v[2], v[3]);
    v[0] = transpose_bits(_mm256_unpacklo_epi32(ab, cd)), v[1] = transpose_bits(_mm256_unpackhi_epi32(ab, cd));
    v[2] = transpose_bits(_mm256_unpacklo_epi32(AB, CD)), v[3] = transpose_bits(_mm256_unpackhi_epi32(AB, CD));
}

template <>
struct Matrices<3> {
    [[gnu::always_inline]] static void to_planes(const Bytes<3>& bytes, std::uint64_t* a, std::uint64_t* b) {
        Bytes<3> v;
        shuffle_bytes<3>(to_stream_order<3>, bytes, v);
        bytes_to_planes(v);
        for (unsigned i = 0; i < 4; ++i) {
            store_half(a + 2 * i, lower(v[i]));
            store_half(b + 2 * i, upper(v[i]));
        }
    }

    [[gnu::always_inline]] static void from_planes(const std::uint64_t* a, const std::uint64_t* b, Bytes<3>& bytes) {
        Bytes<3> v;
        for (unsigned i = 0; i < 4; ++i) v[i] = join(load_half(a + 2 * i), load_half(b + 2 * i));
        planes_to_bytes(v);
        shuffle_bytes<3>(to_block_order<3>, v, bytes);
    }
};

// 32 planes of each of two blocks, made eight at a time when they are needed, highest first.
template <class Kernel, unsigned rank>
class EncoderPlanes;

template <class Kernel>
class EncoderPlanes<Kernel, 3> {
public:
    // `above`: the planes on top of these, if words have 64 bits; `highest`: planes from there on are empty.
    [[gnu::always_inline]] void load(const Rows<Words32, 3>& rows, const EncoderPlanes*, unsigned) {
        to_bytes<3>(rows, bytes_);
        made_ = 4;
    }

    [[gnu::always_inline]] void encode(BitWriter& writer, unsigned lane, unsigned k, unsigned lowest, unsigned& n,
                                       std::size_t end) {
        while (k > lowest && writer.position() < end) {
            const unsigned index = (k - 1) / 8, base = std::max(lowest, 8 * index);
            for (; made_ > index; --made_) {
                const unsigned at = 8 * made_ - 8;
                Kernel::template Matrices<3>::to_planes(bytes_[made_ - 1], words_[0] + at, words_[1] + at);
            }
            n = encode_planes<Kernel>(writer, words_[lane], k, base, n, end);
            k = base;
        }
    }

private:
    Bytes<3> bytes_[4];
    alignas(32) std::uint64_t words_[2][32];
    unsigned made_ = 4;  // planes from 8 · made_ on are in words_
};

// Planes of two blocks, from `reached` on, back to words; `a` and `b` are zero below.
template <class Kernel>
[[gnu::always_inline]] inline void planes_to_rows(const std::uint64_t* a, const std::uint64_t* b, unsigned reached,
                                                  Rows<Words32, 3>& rows) {
    Bytes<3> bytes[4];
    for (unsigned index = 0; index < 4; ++index) {
        if (8 * index + 8 <= reached) {
            for (__m256i& each : bytes[index]) each = _mm256_setzero_si256();
            continue;
        }
        Kernel::template Matrices<3>::from_planes(a + 8 * index, b + 8 * index, bytes[index]);
    }
    from_bytes<3>(bytes, rows);
}

}  // namespace tamis::zfp::avx2
