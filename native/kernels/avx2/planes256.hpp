// Bit planes of two blocks of 256 coefficients: four words each, and a plane is handled as the word that its n lies in.
//
// From the block's order to the stream's, 16 bytes of the stream gather from 16 groups of 16 bytes of the block, as in
// bytes.hpp; but of these 256 shuffles only the 141 are done that move a byte, one after the other, without a loop (497
// instead of 624 ns to encode a block, 4-D float32 at accuracy 1e-3). Bits are transposed as for 64 coefficients, four
// times. A plane's code is that of planes64.hpp, taken in pieces of up to 27 coefficients or 57 bits: most planes are
// one piece.
#pragma once

#include <utility>

#include "kernels/avx2/decode_planes.hpp"

namespace tamis::zfp::avx2 {

// The shuffles that move a byte, those to group 0 first; `begins` says where those to each group begin.
struct FewShuffles {
    static constexpr unsigned most = 160;
    std::array<std::array<std::uint8_t, 16>, most> places{};
    std::array<std::uint8_t, most> from{};
    std::array<std::uint8_t, 17> begins{};
};

constexpr FewShuffles make_few_shuffles(const std::array<std::uint8_t, 256>& place) {
    FewShuffles shuffles{};
    unsigned count = 0;
    for (unsigned to = 0; to < 16; ++to) {
        for (unsigned from = 0; from < 16; ++from) {
            bool any = false;
            std::array<std::uint8_t, 16> places{};
            for (unsigned i = 0; i < 16; ++i) {
                const unsigned at = place[16 * to + i];
                any |= at / 16 == from;
                places[i] = static_cast<std::uint8_t>(at / 16 == from ? at % 16 : 0x80);
            }
            if (!any) continue;
            shuffles.places[count] = places;
            shuffles.from[count++] = static_cast<std::uint8_t>(from);
        }
        shuffles.begins[to + 1] = static_cast<std::uint8_t>(count);
    }
    return shuffles;
}

template <>
inline constexpr auto to_stream_order<4> = make_few_shuffles(coefficient_order<4>);
template <>
inline constexpr auto to_block_order<4> = make_few_shuffles(inverse_order<4>());

// Written out, since counting and looking up would take as long as the shuffles. Only the first `sources` groups are
// looked at: the others are zero.
template <const FewShuffles& shuffles, unsigned sources = 16>
[[gnu::always_inline]] inline void shuffle_bytes(const Bytes<4>& from, Bytes<4>& to) {
    // Always inlined: two kernels are made of these lines, and of a function in both, the linker would keep one copy.
    const auto shuffle = [&]<std::size_t i>(__m256i& sum) __attribute__((always_inline)) {
        if constexpr (shuffles.from[i] < sources) {
            const __m256i places = _mm256_broadcastsi128_si256(load_half(shuffles.places[i].data()));
            sum = _mm256_or_si256(sum, _mm256_shuffle_epi8(from[shuffles.from[i]], places));
        }
    };
    const auto gather = [&]<std::size_t group, std::size_t first, std::size_t... i>(std::index_sequence<i...>)
                            __attribute__((always_inline)) {
                                __m256i sum = _mm256_setzero_si256();
                                (shuffle.template operator()<first + i>(sum), ...);
                                to[group] = sum;
                            };
    const auto gather_all = [&]<std::size_t... group>(std::index_sequence<group...>) __attribute__((always_inline)) {
        (gather.template operator()<group, shuffles.begins[group]>(
             std::make_index_sequence<shuffles.begins[group + 1] - shuffles.begins[group]>()),
         ...);
    };
    gather_all(std::make_index_sequence<16>());
}

template <>
struct Matrices<4> {
    [[gnu::always_inline]] static void to_planes(const Bytes<4>& bytes, WidePlane* a, WidePlane* b) {
        Bytes<4> stream;
        shuffle_bytes<to_stream_order<4>>(bytes, stream);
        for (unsigned g = 0; g < 4; ++g) {
            __m256i v[4] = {stream[4 * g], stream[4 * g + 1], stream[4 * g + 2], stream[4 * g + 3]};
            bytes_to_planes(v);
            for (unsigned k = 0; k < 8; ++k) {
                const __m256i pair = k % 2 == 0 ? v[k / 2] : _mm256_unpackhi_epi64(v[k / 2], v[k / 2]);
                a[k][g] = static_cast<std::uint64_t>(_mm_cvtsi128_si64(lower(pair)));
                b[k][g] = static_cast<std::uint64_t>(_mm_cvtsi128_si64(upper(pair)));
            }
        }
    }

    [[gnu::always_inline]] static void from_planes(const WidePlane* a, const WidePlane* b, Bytes<4>& bytes) {
        const auto words = [](const WidePlane& plane) {
            return _mm256_load_si256(reinterpret_cast<const __m256i*>(plane.data()));
        };
        const auto two = [](const WidePlane* planes, unsigned g) {
            return _mm_set_epi64x(static_cast<long long>(planes[1][g]), static_cast<long long>(planes[0][g]));
        };
        __m256i any = _mm256_setzero_si256();
        for (unsigned k = 0; k < 8; ++k) any = _mm256_or_si256(any, _mm256_or_si256(words(a[k]), words(b[k])));
        // Smooth blocks have nothing past their first 64 coefficients in most of their planes.
        const bool few = _mm256_testz_si256(any, _mm256_setr_epi64x(0, -1, -1, -1));
        Bytes<4> stream;
        for (unsigned g = 0; g < (few ? 1 : 4); ++g) {
            __m256i v[4];
            for (unsigned i = 0; i < 4; ++i) v[i] = join(two(a + 2 * i, g), two(b + 2 * i, g));
            planes_to_bytes(v);
            for (unsigned i = 0; i < 4; ++i) stream[4 * g + i] = v[i];
        }
        if (few)
            shuffle_bytes<to_block_order<4>, 4>(stream, bytes);
        else
            shuffle_bytes<to_block_order<4>>(stream, bytes);
    }
};

// At least 57 bits of a plane from coefficient n on. What lies past its end is that of the next one, or of nothing.
[[gnu::always_inline]] inline std::uint64_t coefficients_from(const std::uint64_t* plane, unsigned n) {
    return load_le64(reinterpret_cast<const std::uint8_t*>(plane) + n / 8) >> n % 8;
}

// Write one plane, four words with a fifth to look at after them; returns the new n. The slots are those of
// planes64.hpp, 27 coefficients at a time.
template <class Kernel>
    requires(Kernel::fast_pext)
[[gnu::always_inline]] inline unsigned encode_plane(BitWriter& writer, const std::uint64_t* plane, unsigned n) {
    constexpr unsigned most = 27;  // whose code, with the last group bit, is one put
    unsigned word = 0;
    for (; word < n / 64; ++word) writer.put_word(plane[word]);
    if (n == 256) return n;
    unsigned last = 3;
    while (last > word && plane[last] == 0) --last;
    const unsigned length = 64 * last + bit_length(plane[last]);
    unsigned h = length > n ? length - n : 0;
    std::uint64_t plain = _bzhi_u64(plane[word], n % 64), first = 1;
    unsigned count = n % 64;
    for (; h > most; h -= most) {
        const std::uint64_t part = _bzhi_u64(coefficients_from(plane, n), most);
        const std::uint64_t sent = _bzhi_u64(_pdep_u64(2 * part + first, even_places) | odd_places, 2 * most);
        writer.put_wide(plain, count);
        plain = _pext_u64(_pdep_u64(part, odd_places) | even_places, sent), count = popcount(sent);
        first = part >> (most - 1);
        n += most;
    }
    const std::uint64_t part = _bzhi_u64(coefficients_from(plane, n), h), below = _bzhi_u64(~std::uint64_t{0}, 2 * h);
    const std::uint64_t groups = _bzhi_u64(_pdep_u64(2 * part + first, even_places), 2 * h + 1);
    const std::uint64_t sent = _bzhi_u64(groups | (below & odd_places), std::min(2 * (256 - n) - 1, 64u));
    const std::uint64_t code = _pext_u64(_pdep_u64(part, odd_places) | (below & even_places), sent);
    if (count + popcount(sent) <= 56) [[likely]] {
        writer.put(plain | code << count, count + popcount(sent));
    } else {
        writer.put_wide(plain, count);
        writer.put(code, popcount(sent));
    }
    return n + h;
}

// Where PDEP and PEXT are slow, by counting zeros.
template <class Kernel>
    requires(!Kernel::fast_pext)
[[gnu::always_inline]] inline unsigned encode_plane(BitWriter& writer, const std::uint64_t* plane, unsigned n) {
    return zfp::encode_plane(writer, WidePlane{plane[0], plane[1], plane[2], plane[3]}, n);
}

template <class Kernel>
class EncoderPlanes<Kernel, 4> {
public:
    // As for 64 coefficients.
    [[gnu::always_inline]] void load(const Rows<Words32, 4>& rows, const EncoderPlanes*, unsigned) {
        to_bytes<4>(rows, bytes_);
        made_ = 4;
        words_[0][32][0] = words_[1][32][0] = 0;
    }

    [[gnu::always_inline]] void encode(BitWriter& writer, unsigned lane, unsigned k, unsigned lowest, unsigned& n,
                                       std::size_t end) {
        for (; k > lowest && writer.position() < end; --k) {
            for (; 8 * made_ >= k; --made_) {
                const unsigned at = 8 * made_ - 8;
                Kernel::template Matrices<4>::to_planes(bytes_[made_ - 1], words_[0] + at, words_[1] + at);
            }
            n = encode_plane<Kernel>(writer, words_[lane][k - 1].data(), n);
        }
    }

private:
    Bytes<4> bytes_[4];
    alignas(32) WidePlane words_[2][33];  // one plane more, to look at
    unsigned made_ = 4;                   // planes from 8 · made_ on are in words_
};

// The group tests and runs of a plane, from bit `at` on; true if they were read to their end, false if the rest is for
// plane_code.hpp's decoder. As in decode_planes.hpp, but code that fills the bits looked at is taken up to its last
// one.
template <class Kernel>
[[gnu::always_inline]] inline bool decode_runs(BitReader& reader, WidePlane& plane, unsigned& n, std::size_t end) {
    constexpr unsigned looked_at = 57;
    for (bool ends = false; !ends;) {
        const std::uint64_t bits = reader.peek();
        const CodeEntry entry = code_table.entries[bits % (1 << code_nbits)];
        std::uint64_t ones = entry.ones;
        unsigned advance = entry.advance, length = entry.length;
        ends = length != 0;
        if (!ends) {
            const std::uint64_t is_value = running_parity(bits) << 1;
            length = zfp::detail::trailing_zeros(~(bits | is_value)) + 1;
            ends = length <= looked_at;
            if (!ends) length = bit_length(_bzhi_u64(bits & is_value, looked_at));
            const std::uint64_t values = _bzhi_u64(is_value, length - ends);
            ones = extract<Kernel>(bits, values);
            advance = popcount(values);
        }
        if (length == 0 || n + advance >= 256 || reader.position + length > end) return false;
        plane[n / 64] |= ones << n % 64;
        if (n % 64 + advance > 64) plane[n / 64 + 1] |= ones >> (64 - n % 64);
        n += advance;
        reader.position += length;
    }
    return true;
}

// Read planes as decode_planes.hpp does. `planes` is zero before.
template <class Kernel, unsigned size>
    requires(size == 256)
[[gnu::always_inline]] inline unsigned decode_planes(BitReader& shared, WidePlane* planes, unsigned k, unsigned lowest,
                                                     std::size_t end) {
    BitReader reader = shared;
    const unsigned top = k;
    unsigned n = 0;
    k -= zfp::detail::skip_empty_planes(reader, k - lowest, end);
    const bool any = k > lowest && reader.position < end;
    while (k > lowest && reader.position < end) {
        WidePlane& plane = planes[--k];
        const std::size_t left = end - reader.position;
        const unsigned plain = static_cast<unsigned>(std::min<std::size_t>(n, left));
        for (unsigned at = 0; at < plain; at += 64)
            plane[at / 64] = _bzhi_u64(reader.peek_wide(reader.position + at), std::min(plain - at, 64u));
        reader.position += plain;
        if (n == 256 || left <= n || decode_runs<Kernel>(reader, plane, n, end)) continue;
        n = zfp::detail::decode_runs(reader, n, 256, end,
                                     [&](unsigned i) { plane[i / 64] |= std::uint64_t{1} << i % 64; });
    }
    shared = reader;
    return any ? k : top;
}

// Planes of two blocks, from `reached` on, back to words; `a` and `b` are zero below.
template <class Kernel>
[[gnu::always_inline]] inline void planes_to_rows(const WidePlane* a, const WidePlane* b, unsigned reached,
                                                  Rows<Words32, 4>& rows) {
    Bytes<4> bytes[4];
    for (unsigned index = 0; index < 4; ++index) {
        if (8 * index + 8 <= reached) {
            for (__m256i& each : bytes[index]) each = _mm256_setzero_si256();
            continue;
        }
        Kernel::template Matrices<4>::from_planes(a + 8 * index, b + 8 * index, bytes[index]);
    }
    from_bytes<4>(bytes, rows);
}

}  // namespace tamis::zfp::avx2
