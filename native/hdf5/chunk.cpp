#include "hdf5/chunk.hpp"

namespace tamis::hdf5 {

namespace {

using Extents = std::span<const unsigned long long>;

// "4x1x6" of a chunk; with `kept`, axes beyond the last four longer than one become 1.
Message shape_text(Extents extents, std::size_t longer, std::size_t kept) {
    constexpr std::size_t longest = sizeof "x18446744073709551615";
    Message text;
    std::size_t at = 0;
    for (std::size_t axis = 0; axis < extents.size() && at < sizeof text.text - longest; ++axis) {
        const bool squeeze = extents[axis] > 1 && longer-- > kept;
        at += static_cast<std::size_t>(std::snprintf(text.text + at, sizeof text.text - at,
                                                     axis == 0 ? "%llu" : "x%llu", squeeze ? 1ULL : extents[axis]));
    }
    return text;
}

}  // namespace

Message layout_of_chunk(Extents extents, Layout& layout) {
    std::array<std::size_t, zfp::max_rank> fastest_first{1, 1, 1, 1};
    std::size_t longer = 0;
    for (std::size_t axis = extents.size(); axis-- > 0;)
        if (extents[axis] > 1 && longer++ < zfp::max_rank)
            fastest_first[longer - 1] = static_cast<std::size_t>(extents[axis]);
    const Message shape = shape_text(extents, longer, longer);
    if (longer == 0)
        return Message::format(
            "zfp: expected a chunk of more than one value, got %.150s; use chunks of at least 4 values along an axis",
            shape.text);
    if (longer > zfp::max_rank)
        return Message::format("zfp: chunk must have only 1...4 non-unity dimensions, got %.150s with %zu; use %.150s",
                               shape.text, longer, shape_text(extents, longer, zfp::max_rank).text);
    const auto rank = static_cast<unsigned>(longer);
    for (unsigned axis = 0; axis < rank; ++axis)
        if (fastest_first[axis] > zfp::max_extent(rank))
            return Message::format(
                "zfp: chunk %.150s has an axis of %zu, the ZFP header takes at most %zu for %u axes longer than 1; use "
                "a "
                "chunk of at most %zu along it",
                shape.text, fastest_first[axis], zfp::max_extent(rank), rank, zfp::max_extent(rank));
    layout = Layout::contiguous(rank, fastest_first);
    return {};
}

Message stored_of_request(CdValues requested, const Chunk& chunk, Params& params, unsigned (&stored)[max_stored],
                          std::size_t& count) {
    Status status = params_of_request(requested, chunk.type, chunk.layout.rank, params);
    if (status) status = check_request(params, chunk.type);
    if (!status) return describe(status, chunk.type);
    if (chunk.is_unsigned && !params.lossless())
        return Message::format(
            "zfp: lossy modes treat unsigned integers as signed, so that values near 0 wrap; use reversible mode, or a "
            "signed type");
    status = stored_of_params(params, chunk.type, chunk.layout, stored, count);
    return status ? Message{} : describe(status, chunk.type);
}

}  // namespace tamis::hdf5
