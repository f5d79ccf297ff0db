// One array in several threads: the bytes, values and refusals of one thread.
#pragma once

#include <optional>

#include "cases.hpp"
#include "tamis/zfp/parallel_decode.hpp"
#include "tamis/zfp/parallel_encode.hpp"

namespace tamis::tests {

inline zfp::Sharing random_sharing(Random& random) {
    const std::vector<std::size_t> sizes{1, 40, 300, 1000};
    return {2 + random.below(4), random.pick(sizes), 4 * random.pick(sizes), random.pick(sizes), 1 + random.below(60)};
}

// Hundreds of blocks.
inline Layout large_layout(Random& random) {
    const unsigned rank = 1 + static_cast<unsigned>(random.below(4));
    constexpr std::size_t most[] = {3000, 80, 30, 14};
    std::array<std::size_t, zfp::max_rank> extent{1, 1, 1, 1};
    for (unsigned axis = 0; axis < rank; ++axis) extent[axis] = 1 + random.below(most[rank - 1]);
    return random.one_in(2) ? Layout::contiguous(rank, extent) : strided(random, rank, extent);
}

struct Whole {
    Status status;
    std::size_t end = 0;
    std::vector<std::uint8_t> bytes;
};

// The header is any bits: they are kept.
inline Whole encode_whole(const zfp::Kernel& kernel, const Array& array, const Params& params,
                          const std::vector<std::uint8_t>& header, std::size_t start) {
    const Exact out(zfp::encode_capacity(array.type(), array.layout(), params, start));
    std::copy_n(header.begin(), (start + 7) / 8, out.data());
    Whole whole;
    whole.status = kernel.encode(array.type(), array.origin(), array.layout(), params, out.data(), start, whole.end);
    if (whole.status) whole.bytes.assign(out.data(), out.data() + (whole.end + 7) / 8);
    return whole;
}

inline std::optional<std::vector<std::uint8_t>> encode_shared(const zfp::Kernel& kernel, const Array& array,
                                                              const Params& params,
                                                              const std::vector<std::uint8_t>& header,
                                                              std::size_t start, const zfp::Sharing& sharing) {
    zfp::EncodedRuns runs(array.layout(), sharing);
    if (!runs.encode(kernel, array.type(), array.origin(), params, header.data(), start)) return std::nullopt;
    const Exact out(runs.nbytes());
    runs.join(out.data());
    return std::vector<std::uint8_t>(out.data(), out.data() + out.size());
}

inline void require_same_decoded(const zfp::Kernel& kernel, const Array& like, const Params& params,
                                 const std::vector<std::uint8_t>& bytes, std::size_t start,
                                 const zfp::Sharing& sharing) {
    const Exact in(bytes);
    Array one(like.type(), like.layout()), shared(like.type(), like.layout());
    std::size_t end_of_one = 0, end_of_shared = 0;
    const Status expected = kernel.decode(one.type(), one.origin(), one.layout(), params, in.span(), start, end_of_one);
    const zfp::Source source{kernel, like.type(), like.layout().rank, params, in.span()};
    zfp::ParallelDecoder decoder(source, shared.origin(), shared.layout(), start, sharing);
    const Status found = decoder.decode(end_of_shared);
    require(found.code == expected.code && found.where == expected.where, "threads refuse what one thread refuses");
    require(shared.gaps_untouched(), "threads write nothing between the values");
    if (!expected) return;
    require(end_of_one == end_of_shared, "threads end where one thread ends");
    require(one.values() == shared.values(), "threads decode what one thread decodes");
}

// Returns whether the array was encoded.
inline bool threads_agree(Random& random, const zfp::Kernel& kernel) {
    const Type type = random_type(random);
    const Layout layout = large_layout(random);
    const Params params = random_params(random, type, layout.rank);
    Array array(type, layout);
    fill(random, array, random_values(random));
    const std::size_t start = random.below(70);
    std::vector<std::uint8_t> header(16);
    for (auto& byte : header) byte = random.byte();
    const Whole whole = encode_whole(kernel, array, params, header, start);
    const auto shared = encode_shared(kernel, array, params, header, start, random_sharing(random));
    require(shared.has_value() == static_cast<bool>(whole.status), "threads refuse what one thread refuses");
    if (!shared) return false;
    require(*shared == whole.bytes, "threads write the bytes of one thread");
    std::vector<std::uint8_t> bytes = whole.bytes;
    if (random.one_in(4)) bytes.insert(bytes.end(), random.below(5000), 0);
    require_same_decoded(kernel, array, params, bytes, start, random_sharing(random));
    mutate(random, bytes);
    require_same_decoded(kernel, array, params, bytes, start, random_sharing(random));
    return true;
}

// From somewhere in a stream whose blocks differ, true blocks are soon found.
inline void require_chain_becomes_true(const zfp::Kernel& kernel) {
    Random random(5);
    constexpr Layout layout = Layout::contiguous(2, {300, 400, 1, 1});
    constexpr std::size_t blocks = layout.blocks();
    Array array(Type::float32, layout);
    fill(random, array, Values::small);
    Params params;
    zfp::set_precision(params, 13);
    const Whole whole = encode_whole(kernel, array, params, {}, 0);
    const Exact in(whole.bytes);
    const zfp::Source source{kernel, Type::float32, 2, params, in.span()};
    std::vector<std::size_t> ends(blocks);
    require(source.walk(0, ends) == blocks && ends.back() == whole.end, "walking counts the blocks");

    const std::atomic<bool> stop = false;
    zfp::Chain chain(source, 16, blocks / 16);
    chain.decode(whole.end / 3, 0, whole.end, stop);
    const auto second = std::upper_bound(ends.begin(), ends.end(), whole.end / 3);  // that begins in the chain
    const zfp::Mark at{*second, static_cast<std::size_t>(second - ends.begin()) + 1};
    const auto met = zfp::meet({source, at}, {source, chain.near_position(at.position)}, blocks);
    require(met && met->a.number < at.number + blocks / 10, "a chain soon has true blocks");
    require(chain.marks().back().position > ends[blocks - 40], "it goes on to the end");
    for (const zfp::Mark& mark : chain.marks()) {
        if (mark.number < met->b.number) continue;
        require(ends[mark.number - met->b.number + met->a.number - 1] == mark.position, "all that follow are true");
    }
}

}  // namespace tamis::tests
