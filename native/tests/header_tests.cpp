// The ZFP header: every mode, every limit, and what is none.

#include "cases.hpp"
#include "tests.hpp"

using namespace tamis;
using namespace tamis::tests;

namespace {

using Bytes = std::array<std::uint8_t, zfp::header_max_nbytes>;

zfp::Header packed_and_unpacked(Type type, const Layout& layout, const Params& params, std::size_t nbits) {
    Bytes bytes;
    std::size_t written = 0;
    require(static_cast<bool>(zfp::pack_header(type, layout, params, bytes, written)), "the header is written");
    require(written == nbits, "the header has the length of its mode");
    const Exact in{std::span(bytes).first((nbits + 7) / 8)};
    zfp::Header header;
    require(static_cast<bool>(zfp::unpack_header(in.span(), header)), "the header is read from its own bytes");
    require(header.nbits == nbits && header.type == type && header.layout.rank == layout.rank, "the header is read");
    require(header.layout.extent == layout.extent, "the extents are read");
    require(header.layout.stride == Layout::contiguous(layout.rank, layout.extent).stride, "strides are contiguous");
    return header;
}

void short_headers_hold_every_code() {
    Random random(1);
    for (unsigned code = 0; code < zfp::detail::long_mode; ++code) {
        place = {"short mode", code};
        const Params params = zfp::detail::params_of_short(code);
        const unsigned rank = 1 + code % 4;
        const Layout layout = Layout::contiguous(rank, random_extent(random, rank));
        // All 64 planes with no other limit are the defaults, which only the long form holds.
        const bool is_default = params == Params{};
        const std::size_t nbits = is_default ? zfp::header_long_nbits : zfp::header_short_nbits;
        const auto header = packed_and_unpacked(all_types[code / 4 % 4], layout, params, nbits);
        require(header.params == params, "parameters of a short mode are kept");
        require(is_default || zfp::detail::short_mode(params) == code, "a short mode has one code");
        require(is_default == ((code >= 2111 && code < 2176) || code == 2177),
                "precision from 64 on and the least accuracy are the defaults");
    }
}

void long_headers_hold_every_limit() {
    place = {"long modes", 0};
    for (const unsigned minbits : {1u, 2u, 4096u, 32767u, 32768u})
        for (const unsigned maxbits : {1u, 2049u, 16657u, 32768u})
            for (const unsigned maxprec : {1u, 31u, 63u, 64u})
                for (const int minexp : {-16495, -1076, -1075, -1074, -1073, 0, 843, 844, 16272}) {
                    const Params params{minbits, maxbits, maxprec, minexp};
                    if (zfp::detail::short_mode(params) != zfp::detail::long_mode) continue;
                    const Layout layout = Layout::contiguous(3, {1, 65536, 77, 1});
                    const auto header = packed_and_unpacked(Type::int64, layout, params, zfp::header_long_nbits);
                    require(header.params == params, "parameters of the long mode are kept");
                    ++place.number;
                }
    require(place.number > 500, "most limits need the long mode");
}

// Words as H5Z-ZFP 1.1.1 with libzfp 1.0.1 stores them.
void headers_are_those_of_libzfp() {
    place = {"known headers", 0};
    struct Known {
        Type type;
        Layout layout;
        Params params;
        std::vector<std::uint32_t> words;
    };
    const Layout line = Layout::contiguous(1, {256, 1, 1, 1});
    Params rate;
    zfp::set_rate(rate, 16, Type::float64, 1);
    Params accuracy;
    zfp::set_accuracy(accuracy, 1e-3);
    Params precision;
    zfp::set_precision(precision, 20);
    const std::vector<Known> all{
        {Type::float64, line, rate, {0x0570667a, 0x00000ff3, 0x03f00000}},
        {Type::float64, line, accuracy, {0x0570667a, 0x00000ff3, 0xca900000}},
        {Type::float64, line, precision, {0x0570667a, 0x00000ff3, 0x81300000}},
        {Type::float64, line, zfp::reversible_params(), {0x0570667a, 0x00000ff3, 0x88000000}},
        {Type::float64, line, Params{}, {0x0570667a, 0x00000ff3, 0xfff00000, 0xe0888000, 0x000787af}},
        {Type::float32, Layout::contiguous(3, {5, 20, 10, 1}), accuracy, {0x0570667a, 0x0130004a, 0xca900090}},
    };
    for (const Known& known : all) {
        Bytes bytes;
        std::size_t nbits = 0;
        zfp::pack_header(known.type, known.layout, known.params, bytes, nbits);
        require((nbits + 31) / 32 == known.words.size(), "a header has the words of libzfp's");
        for (std::size_t i = 0; i < known.words.size(); ++i)
            require(zfp::load_le<std::uint32_t>(bytes.data() + 4 * i) == known.words[i], "a header is libzfp's");
        ++place.number;
    }
}

void extents_have_limits() {
    Bytes bytes;
    std::size_t nbits = 0;
    for (unsigned rank = 1; rank <= 4; ++rank)
        for (unsigned axis = 0; axis < rank; ++axis) {
            place = {"axis of extent limits, 10 × rank + axis", 10 * rank + axis};
            Layout layout{rank, {1, 1, 1, 1}, {}};
            layout.extent[axis] = std::size_t{1} << (48 / rank);
            packed_and_unpacked(Type::int32, layout, zfp::reversible_params(), zfp::header_short_nbits);
            for (const std::size_t extent : {layout.extent[axis] + 1, std::size_t{0}, ~std::size_t{0}}) {
                layout.extent[axis] = extent;
                const Status status = zfp::pack_header(Type::int32, layout, Params{}, bytes, nbits);
                require(status.code == Code::extent_large && status.where == axis, "a long axis is named");
            }
        }
}

void bytes_that_are_no_header_are_refused() {
    place = {"bytes that are no header", 0};
    Bytes bytes;
    std::size_t nbits = 0;
    zfp::pack_header(Type::float32, Layout::contiguous(2, {9, 9, 1, 1}), Params{}, bytes, nbits);
    zfp::Header header;
    for (std::size_t length = 0; length < 19; ++length) {
        const Exact in{std::span(bytes).first(length)};
        require(zfp::unpack_header(in.span(), header).code == Code::not_a_header, "a part of a header is none");
    }
    for (std::size_t i = 0; i < 3; ++i) {
        Bytes other = bytes;
        other[i] ^= 0x20;
        require(zfp::unpack_header(other, header).code == Code::not_a_header, "the magic is zfp");
    }
    bytes[3] = 4;
    const Status status = zfp::unpack_header(bytes, header);
    require(status.code == Code::codec_version && status.where == 4, "another codec is named");
}

}  // namespace

void tamis::tests::test_headers() {
    short_headers_hold_every_code();
    long_headers_hold_every_limit();
    headers_are_those_of_libzfp();
    extents_have_limits();
    bytes_that_are_no_header_are_refused();
}
