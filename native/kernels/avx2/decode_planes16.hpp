// Reading the planes of blocks of 16 coefficients, up to four at a time.
//
// A plane that makes no coefficient significant is n plain bits and a group bit 0, and the next plane has the same n.
// So as long as that goes on, group bits stand n + 1 apart, and the first 1 among them says how many such planes there
// are and where the code of the plane after them begins, which a table tells (decode_planes.hpp). n = 5:
//
//     coming bits     ppppp 0 ppppp 0 ppppp 1 0 0 1 0 …     the first on the left: two planes that add nothing, and one
//     `groups`        ····· 1 ····· 1 ····· 1 ···           that adds coefficients 5 + 2
//     `plain`         11111 · 11111 · 11111 · 11111
//
// PEXT and PDEP bring the plain bits of all to 16 bits each, and one store writes these planes, with the ones that the
// table gives in the last of them. Of the planes that are sent 45 (rough fields) to 60 % (smooth ones) add nothing.
// This is the rule of the format for any bits as long as the step ends within the budget and before the last
// coefficient; where it may not, it is taken apart, plane by plane.
//
// A step is 45 instructions, as many as a plane before, and takes the coming bits by one load. Before it, while n ≤ 4,
// the table of several planes does the same for planes that add something, too. 2-D float32 decodes in 65 to 105 ns a
// block where it took 70 to 155 plane by plane.
#pragma once

#include <algorithm>

#include "kernels/avx2/decode_planes.hpp"

namespace tamis::zfp::avx2 {

// Planes are kept from the highest on, and up to eight are stored past the last one.
inline constexpr unsigned spare_planes16 = 8;

// What a step with n plain bits looks at.
struct alignas(64) Step {
    std::uint64_t groups = 0;            // group bits of planes that may add nothing
    std::uint64_t last = 0;              // that of the plane after them, if they do
    std::uint64_t plain = 0;             // plain bits of all
    std::uint64_t lanes = 0;             // and where they go
    std::uint64_t origin = 0, mask = 0;  // the part of the table for 16 - n coefficients left
};

inline constexpr auto steps = [] {
    std::array<Step, 16> all{};
    for (unsigned n = 0; n < 16; ++n) {
        Step& step = all[n];
        // All of it and what the table looks at are 56 bits at most, which one load gives.
        const unsigned most = n < 12 ? 3 : 2;
        for (unsigned i = 0; i <= most; ++i) {
            (i < most ? step.groups : step.last) |= std::uint64_t{1} << (i * (n + 1) + n);
            step.plain |= low_mask(n) << (i * (n + 1));
            step.lanes |= low_mask(n) << (16 * i);
        }
        step.origin = code_table.parts[16 - n].origin, step.mask = code_table.parts[16 - n].mask;
    }
    return all;
}();

template <class Kernel>
[[gnu::always_inline]] inline std::uint64_t plain_lanes(std::uint64_t bits, const Step& step, unsigned n) {
    if constexpr (Kernel::fast_pext) return _pdep_u64(_pext_u64(bits, step.plain), step.lanes);
    std::uint64_t lanes = 0;
    for (unsigned i = 0; i < 4; ++i) lanes |= (bits >> (i * (n + 1)) & 0xffff) << (16 * i);
    return lanes & step.lanes;
}

// Four nibbles to 16 bits each.
[[gnu::always_inline]] inline std::uint64_t spread_nibbles(std::uint64_t nibbles) {
    nibbles = (nibbles | nibbles << 24) & 0x000000ff000000ff;
    return (nibbles | nibbles << 12) & 0x000f000f000f000f;
}

[[gnu::always_inline]] inline void store_planes(std::uint16_t* to, std::uint64_t four) {
    store_le64(reinterpret_cast<std::uint8_t*>(to), four);
}

// Read `count` bits that are planes as they stand; the rest of the last four planes is zero.
[[gnu::always_inline]] inline void copy_planes(BitReader& reader, std::uint16_t* to, unsigned count) {
    const auto word = [&](std::size_t i, unsigned left) {
        store_planes(to + 4 * i, _bzhi_u64(reader.peek_wide(reader.position + 64 * i), std::min(left, 64u)));
    };
    // Two words need no branch: most blocks have no more.
    word(0, count);
    word(1, count > 64 ? count - 64 : 0);
    for (unsigned i = 2; 64 * i < count; ++i) word(i, count - 64 * i);
    reader.position += count;
}

struct Progress {
    std::size_t position;
    unsigned planes, n;
};

// Read one plane, of which nothing is known. Apart, so that the loop below keeps its registers.
template <class Kernel>
[[gnu::noinline]] Progress decode_one_plane16(const std::uint8_t* base, Progress at, std::size_t end,
                                              std::uint16_t* planes) {
    BitReader reader{base, at.position};
    planes[at.planes] = static_cast<std::uint16_t>(decode_last_plane<Kernel, 16>(reader, at.n, end));
    return {reader.position, at.planes + 1, at.n};
}

// Read up to `count` planes of a block that ends at bit `end`; returns how many were reached, none if all are empty.
// `planes` is zero before.
template <class Kernel>
[[gnu::noinline]] Progress decode_planes16(const std::uint8_t* base, std::size_t position, std::uint16_t* planes,
                                           unsigned count, std::size_t end) {
    if (position >= end) return {position, 0, 0};
    BitReader reader{base, position};
    const auto most = static_cast<unsigned>(std::min<std::size_t>(count, end - position));
    std::uint64_t coming = reader.peek();
    unsigned done = detail::trailing_zeros(coming), n = 0;
    if (done < most && done <= 12) [[likely]] {
        reader.position += done;
        coming >>= done;
    } else {
        done = detail::skip_empty_planes(reader, most, end);
        if (done == most) return {reader.position, 0, 0};
        coming = reader.peek();
    }
    // 45 bits at most, which are there.
    for (unsigned i = 0; i < 5 && n <= 4 && done + 4 <= count; ++i) {
        const detail::NibbleCode& code =
            detail::window_table<true>[n << detail::window_nbits | (coming & low_mask(detail::window_nbits))];
        if (code.planes == 0 || reader.position + code.length > end) break;
        store_planes(planes + done, spread_nibbles(code.bits));
        done += code.planes;
        n = code.n;
        reader.position += code.length;
        coming >>= code.length;
    }
    if (done == count || reader.position == end) return {reader.position, done, n};
    for (;;) {
        const Step& step = steps[n];
        const std::uint64_t bits = reader.peek();
        const unsigned group = detail::trailing_zeros((bits & step.groups) | step.last);
        const CodeEntry& entry = code_table.entries[step.origin + (bits >> group & step.mask)];
        const unsigned empty = popcount(_bzhi_u64(step.groups, group));
        const std::uint64_t plain = plain_lanes<Kernel>(bits, step, n);
        const std::size_t after = reader.position + group + entry.length;
        store_planes(planes + done, plain | std::uint64_t{entry.ones} << (n + 16 * empty));
        if (n + entry.advance < 16 && after <= end && done + empty < count) [[likely]] {
            done += empty + 1;
            reader.position = after;
            n += entry.advance;
            if (done == count) break;
            continue;
        }
        // As many of the empty planes as there are, and the one after them.
        const auto left = static_cast<unsigned>(end - reader.position);
        const unsigned whole = popcount(_bzhi_u64(step.groups, std::min(group, left)));
        const unsigned some = std::min(whole, count - done);
        store_planes(planes + done, plain);
        done += some;
        reader.position += some * (n + 1);
        if (done == count || reader.position == end) break;
        const bool told = n + entry.advance < 16 || (n + entry.advance == 16 && 16 - n <= most_left);
        if (some == empty && told && after <= end) {
            planes[done] = static_cast<std::uint16_t>(planes[done] | entry.ones << n);
            ++done;
            reader.position = after;
            n += entry.advance;
        } else {
            const Progress progress = decode_one_plane16<Kernel>(base, {reader.position, done, n}, end, planes);
            reader.position = progress.position, done = progress.planes, n = progress.n;
        }
        if (n == 16 || done == count || reader.position == end) break;
    }
    store_planes(planes + done, 0);  // what steps wrote ahead
    if (done < count && reader.position < end) {
        const auto left = static_cast<unsigned>(std::min<std::size_t>(16 * (count - done), end - reader.position));
        copy_planes(reader, planes + done, left);
        done += (left + 15) / 16;
    }
    return {reader.position, done, n};
}

}  // namespace tamis::zfp::avx2
