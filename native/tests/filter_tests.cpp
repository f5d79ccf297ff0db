// Promises of the filters that need memory of exact sizes, or a definition to compare with.

#include "filter_cases.hpp"

using namespace tamis;
using namespace tamis::tests;

namespace {

using filters::Code;

Bytes plainly_shuffled(const Bytes& in, std::size_t itemsize) {
    const std::size_t count = in.size() / itemsize;
    Bytes out = in;
    for (std::size_t i = 0; i < count * itemsize; ++i) out[i % itemsize * count + i / itemsize] = in[i];
    return out;
}

Bytes plainly_bitshuffled(const Bytes& in, std::size_t itemsize, std::size_t block) {
    const std::size_t whole = in.size() / itemsize / 8 * 8;
    Bytes out = in;
    for (std::size_t first = 0; first < whole; first += block) {
        const std::size_t count = std::min(block, whole - first), nbits = 8 * itemsize;
        const std::size_t start = first * nbits;
        std::fill_n(out.begin() + static_cast<std::ptrdiff_t>(start / 8), count * itemsize, std::uint8_t{0});
        for (std::size_t i = 0; i < count * nbits; ++i) {
            const std::size_t from = start + i, to = start + i % nbits * count + i / nbits;
            out[to / 8] |= static_cast<std::uint8_t>((in[from / 8] >> from % 8 & 1) << to % 8);
        }
    }
    return out;
}

void shuffles_are_transpositions() {
    Random random(1);
    for (unsigned round = 0; round < 3000; ++round) {
        place = {"round of shuffle", round};
        const std::size_t itemsize = 1 + random.below(random.one_in(3) ? 300 : 20);
        const std::size_t block = 8 * (1 + random.below(random.one_in(3) ? 300 : 5));
        const Bytes items = random_bytes(random, itemsize * random.below(random.one_in(9) ? 1500 : 150));
        Bytes data = items;
        for (std::size_t rest = random.below(itemsize); rest > 0; --rest) data.push_back(random.byte());

        const Memory in(data), out(data.size()), back(data.size());
        filters::shuffle(in.span(), itemsize, out.data());
        require(out.bytes() == plainly_shuffled(data, itemsize), "shuffle transposes bytes");
        filters::unshuffle(out.span(), itemsize, back.data());
        require(back.bytes() == data, "unshuffle undoes it");

        const Memory whole(items), planes(items.size()), again(items.size());
        filters::bitshuffle(whole.span(), itemsize, block, planes.data());
        require(planes.bytes() == plainly_bitshuffled(items, itemsize, block), "bitshuffle transposes bits");
        filters::bitunshuffle(planes.span(), itemsize, block, again.data());
        require(again.bytes() == items, "bitunshuffle undoes it");
    }
}

void fletcher_is_two_sums() {
    Random random(2);
    for (unsigned round = 0; round < 2000; ++round) {
        place = {"round of fletcher32", round};
        Bytes data = random_bytes(random, random.below(random.one_in(9) ? 20000 : 80));
        if (random.one_in(4)) std::fill(data.begin(), data.end(), random.one_in(2) ? 0xff : 0);
        std::uint64_t low = 0, high = 0;
        for (std::size_t i = 0; i < data.size(); i += 2) {
            low += static_cast<unsigned>(data[i] << 8 | (i + 1 < data.size() ? data[i + 1] : 0));
            low = low > 65535 ? low - 65535 : low;
            high += low;
            high = high > 65535 ? high - 65535 : high;
        }
        require(filters::fletcher32(Memory(data).span()) == (high << 16 | low), "fletcher32 is its definition");
    }
}

void nbit_keeps_the_bits_that_a_type_uses() {
    Random random(3);
    for (unsigned round = 0; round < 20000; ++round) {
        place = {"round of nbit", round};
        const Words values = nbit_values(random);
        const Memory in(random_bytes(random, std::size_t{values[2]} * values[4]));
        filters::nbit::Chunk chunk;
        require(static_cast<bool>(filters::nbit::survey(values, in.span().size(), chunk)), "a sound type is taken");
        const Memory packed(filters::nbit::encoded_nbytes(chunk)), out(in.span().size()), again(packed.span().size());
        filters::nbit::encode(values, chunk, in.data(), packed.span());
        const Memory needed{Bytes(packed.data(), packed.data() + filters::nbit::needed_nbytes(chunk))};
        filters::nbit::decode(values, chunk, needed.span(), out.span());
        filters::nbit::encode(values, chunk, out.data(), again.span());
        require(again.bytes() == packed.bytes(), "the bits that a type uses come back");
        for (std::size_t i = 0; i < out.span().size(); ++i)
            require((out.data()[i] & ~in.data()[i]) == 0, "other bits come back as zeros");
    }
}

void scaleoffset_keeps_integers() {
    Random random(4);
    unsigned cut = 0, kept = 0;
    for (unsigned round = 0; round < 20000; ++round) {
        place = {"round of scaleoffset", round};
        const Words values = scaleoffset_values(random);
        const Bytes items = items_for(random, values);
        const Memory in(items), out(items.size());
        filters::scaleoffset::Params params;
        require(static_cast<bool>(filters::scaleoffset::parse(values, params)), "sound values are taken");
        if (params.verbatim()) continue;
        filters::scaleoffset::Plan plan;
        const filters::Status status = filters::scaleoffset::plan(params, in.data(), plan);
        require(status || (params.is_float && status.code == Code::non_finite), "only NaN is refused");
        if (!status) continue;
        const Memory packed(plan.encoded_nbytes);
        filters::scaleoffset::encode(params, plan, in.data(), packed.span());
        filters::scaleoffset::Header header;
        require(static_cast<bool>(filters::scaleoffset::open(params, packed.span(), header)),
                "what was packed is opened");
        filters::scaleoffset::decode(params, header, packed.span(), out.data());
        const bool all = header.minbits == params.nbits() || (!params.is_float && params.factor == 0);
        require(!all || out.bytes() == items, "integers with bits of their own choice come back, and whatever is kept");
        ++(all ? kept : cut);
    }
    require(kept > 2000 && cut > 2000, "both are tried");
}

}  // namespace

int main() {
    name_place_at_death();
    shuffles_are_transpositions();
    fletcher_is_two_sums();
    nbit_keeps_the_bits_that_a_type_uses();
    scaleoffset_keeps_integers();
    std::puts("all tests of the filters passed");
}
