// Promises of the codec that its Python face cannot show.

#include "tests.hpp"
#include "cases.hpp"
#include "reference.hpp"

using namespace tamis;
using namespace tamis::tests;

namespace {

using Bytes = std::array<std::uint8_t, zfp::header_max_nbytes>;

const zfp::Kernel& kernel = tests::kernel();

void bits_come_back() {
    Random random(2);
    for (unsigned round = 0; round < 300; ++round) {
        place = {"round of bits", round};
        const std::size_t start = random.below(30), pieces = random.below(60);
        std::vector<std::pair<std::uint64_t, unsigned>> sent;
        std::size_t nbits = start;
        for (std::size_t i = 0; i < pieces; ++i) {
            const auto count = static_cast<unsigned>(random.below(65));
            sent.emplace_back(random.bits() & zfp::low_mask(count), count);
            nbits += count;
        }
        const Exact memory(nbits / 8 + 16);  // eight bytes past the one that the last bit lies in
        std::memset(memory.data(), 0xff, memory.size());
        zfp::BitWriter writer(memory.data(), start);
        for (const auto& [bits, count] : sent) {
            const std::size_t before = writer.position();
            if (random.one_in(3)) {  // what is taken back leaves no trace
                writer.put_wide(~std::uint64_t{0}, 40);
                writer.put_zeros(random.below(20));
                writer.seek(before);
            }
            if (bits == 0)
                writer.put_zeros(count);
            else if (count == 64)
                writer.put_word(bits);
            else
                writer.put_wide(bits, count);
            require(writer.position() == before + count, "the writer counts its bits");
        }
        writer.flush();
        require((zfp::load_le64(memory.data()) & zfp::low_mask(static_cast<unsigned>(start))) ==
                    zfp::low_mask(static_cast<unsigned>(start)),
                "bits before the start are kept");
        zfp::BitReader reader{memory.data(), start};
        for (const auto& [bits, count] : sent) {
            require((reader.peek_wide(reader.position) & zfp::low_mask(count)) == bits, "64 bits are read at once");
            if (count <= 57)
                require(reader.get(count) == bits, "bits come back");
            else
                reader.position += count;
        }
        require(reader.position == nbits, "the reader counts its bits");
    }
}

// Plane k of a slab, coefficient i at bit i.
template <class UInt, unsigned size>
zfp::WidePlane plane_of(const zfp::Slab<UInt, size>& slab, unsigned k) {
    if constexpr (size == 4)
        return {slab.from(k) & 15};
    else if constexpr (size == 256)
        return slab.get(k);
    else
        return {slab.get(k)};
}

template <class UInt, unsigned size>
void set_plane(zfp::Slab<UInt, size>& slab, unsigned k, const zfp::WidePlane& plane) {
    if constexpr (size == 4)
        slab.set_from(k, plane[0]);
    else if constexpr (size == 256)
        slab.set(k, plane);
    else
        slab.set(k, plane[0]);
}

// Coefficient i of a block waits in slot(i).
template <class UInt, unsigned size>
void planes_are_bits_of_coefficients() {
    using Slab = zfp::Slab<UInt, size>;
    constexpr unsigned nbits = zfp::int_nbits<UInt>;
    static_assert(nbits % Slab::planes == 0);
    place = {"planes of size", size};
    Random random(size + nbits);
    for (unsigned round = 0; round < 20; ++round) {
        UInt slots[size], back[size] = {};
        for (UInt& value : slots) value = static_cast<UInt>(random.bits() >> random.below(nbits));
        for (unsigned index = 0; index < nbits / Slab::planes; ++index) {
            Slab built, set;
            built.build(slots, index);
            set.clear();
            for (unsigned k = 0; k < Slab::planes; ++k) {
                zfp::WidePlane expected{};
                for (unsigned i = 0; i < size; ++i) {
                    const UInt bit = slots[zfp::detail::slot(i, size)] >> (index * Slab::planes + k) & 1;
                    expected[i / 64] |= std::uint64_t{bit} << i % 64;
                }
                require(plane_of(built, k) == expected, "a plane holds a bit of each coefficient");
                set_plane(set, k, expected);
            }
            set.add_to(back, index);
        }
        require(std::equal(slots, slots + size, back), "planes give their coefficients back");
    }
}

template <class UInt>
void planes_of_every_size() {
    planes_are_bits_of_coefficients<UInt, 4>();
    planes_are_bits_of_coefficients<UInt, 16>();
    planes_are_bits_of_coefficients<UInt, 64>();
    planes_are_bits_of_coefficients<UInt, 256>();
}

template <class Int>
void lossy_integers_have_borders() {
    using UInt = std::make_unsigned_t<Int>;
    constexpr Int limit = Int{1} << (zfp::int_nbits<Int> - 2), lowest = std::numeric_limits<Int>::min();
    place = {"borders of integers of bits", zfp::int_nbits<Int>};
    for (const Int value : {Int{0}, Int{1}, Int{-1}, Int{limit - 1}, Int{1 - limit}})
        require(zfp::in_lossy_range(static_cast<UInt>(value)), "magnitudes below 2^(n - 2) are taken");
    for (const Int value : {limit, Int{-limit}, lowest, Int{lowest + 1}, std::numeric_limits<Int>::max()}) {
        require(!zfp::in_lossy_range(static_cast<UInt>(value)), "magnitudes from 2^(n - 2) on are refused");
        Int values[10] = {};
        values[9] = value;  // in a partial block, whose padding repeats it
        const Layout layout = Layout::contiguous(1, {10, 1, 1, 1});
        const Type type = zfp::Traits<Int>::type;
        for (const Params& params : {Params{}, zfp::reversible_params()}) {
            const Exact out(zfp::encode_capacity(type, layout, params, 0));
            std::size_t end = 0;
            const Status status = kernel.encode(type, values, layout, params, out.data(), 0, end);
            const Status expected = params.reversible() ? Status{} : Status{Code::integer_range, 9};
            require(status.code == expected.code && status.where == expected.where, "a lossy mode names the value");
        }
    }
}

// Expert numbers at the ends of their types: refused, or coded as the header that is stored for them says.
void edges_of_expert_mode_are_refused_or_mean_what_is_stored() {
    const Layout layout = Layout::contiguous(1, {6, 1, 1, 1});
    for (const Type type : all_types)
        for (const unsigned maxbits : {0u, 1u, 8u, 9u, 32768u, 32769u, 0xffffffffu})
            for (const unsigned minbits : {0u, 1u, 32768u})
                for (const int minexp : {std::numeric_limits<int>::min(), -16496, -1074, 16273, 0x7fffffff - 1024,
                                         std::numeric_limits<int>::max()}) {
                    place = {"expert mode with maxbits", maxbits};
                    Params params;
                    if (!zfp::set_expert(params, minbits, maxbits, 64, minexp) || !zfp::check(params, type)) continue;
                    Bytes bytes;
                    std::size_t nbits = 0, ends[2] = {};
                    zfp::pack_header(type, layout, params, bytes, nbits);
                    zfp::Header header;
                    require(static_cast<bool>(zfp::unpack_header(bytes, header)), "what is accepted is stored");
                    Array array(type, layout);
                    for_each_offset(layout, [&](std::ptrdiff_t offset) {
                        array.set(offset, 1000 + static_cast<std::uint64_t>(offset));
                    });
                    const Exact asked(zfp::encode_capacity(type, layout, params, 0));
                    const Exact kept(zfp::encode_capacity(type, layout, header.params, 0));
                    kernel.encode(type, array.origin(), layout, params, asked.data(), 0, ends[0]);
                    kernel.encode(type, array.origin(), layout, header.params, kept.data(), 0, ends[1]);
                    require(ends[0] == ends[1] && std::memcmp(asked.data(), kept.data(), (ends[0] + 7) / 8) == 0,
                            "stored parameters give the bytes of the requested ones");
                }
}

// Whatever the bits are, and wherever a block is cut: the tables and counted zeros of the decoder mean the same as one
// bit after the other.
template <class Int, unsigned rank>
void any_bits_are_decoded_as_the_format_says() {
    constexpr unsigned size = zfp::block_size(rank), nbits = zfp::int_nbits<Int>;
    constexpr Type type = zfp::Traits<Int>::type;
    place = {"bits of any kind, 1000 × rank + bits", 1000 * rank + nbits};
    Random random(rank + nbits);
    for (unsigned round = 0; round < (rank < 4 ? 20000 : 3000); ++round) {
        const bool cut = !random.one_in(5);
        const auto most = static_cast<unsigned>(cut ? 8 + random.below(random.one_in(2) ? 4 * size : nbits * size)
                                                    : std::size_t{zfp::max_bits});
        const unsigned least = random.one_in(2) ? 1 : 1 + random.word() % most;
        const int minexp = random.one_in(3) ? zfp::min_exp - 1 : zfp::min_exp;
        const Params params{std::min(least, 3 * size), most, 1 + random.word() % 64, minexp};
        const std::size_t start = random.below(9);
        std::vector<std::uint8_t> bytes(2500);
        const unsigned density = 1 + random.word() % 6;  // of ones
        for (auto& byte : bytes) {
            byte = random.byte();
            for (unsigned i = 2; i < density; ++i) byte &= random.byte();
            if (density == 1) byte |= static_cast<std::uint8_t>(random.byte() | random.byte());
        }
        Int expected[size], values[size];
        const std::size_t stop = plain_decode<Int, rank>(expected, params, bytes, start);
        // Read where it lies, and from exactly its own bytes.
        for (const std::size_t length : {bytes.size() + 200, (stop + 7) / 8}) {
            bytes.resize(length);
            const Exact in(bytes);
            std::size_t end = 0;
            const Layout layout =
                Layout::contiguous(rank, {4, rank > 1 ? 4u : 1, rank > 2 ? 4u : 1, rank > 3 ? 4u : 1});
            const Status status = kernel.decode(type, values, layout, params, in.span(), start, end);
            require(static_cast<bool>(status) && end == stop, "a block ends where the format says");
            require(std::equal(values, values + size, expected), "a block has the values that the format says");
        }
    }
}

template <class Int>
void any_bits_of_every_rank() {
    any_bits_are_decoded_as_the_format_says<Int, 1>();
    any_bits_are_decoded_as_the_format_says<Int, 2>();
    any_bits_are_decoded_as_the_format_says<Int, 3>();
    any_bits_are_decoded_as_the_format_says<Int, 4>();
}

void capacity_beyond_memory_is_zero() {
    place = {"capacity", 0};
    const Layout layout = Layout::contiguous(1, {std::size_t{1} << 62, 1, 1, 1});
    require(zfp::encode_capacity(Type::float64, layout, Params{}, 0) == 0, "a capacity that no memory has is zero");
}

}  // namespace

int main() {
    name_place_at_death();
    test_headers();
    bits_come_back();
    planes_of_every_size<std::uint32_t>();
    planes_of_every_size<std::uint64_t>();
    lossy_integers_have_borders<std::int32_t>();
    lossy_integers_have_borders<std::int64_t>();
    edges_of_expert_mode_are_refused_or_mean_what_is_stored();
    any_bits_of_every_rank<std::int32_t>();
    any_bits_of_every_rank<std::int64_t>();
    capacity_beyond_memory_is_zero();
    test_host_settings();
    test_choice();
    test_proofs();
    test_rounding();
    test_statistics();
    std::puts("all native tests passed");
}
