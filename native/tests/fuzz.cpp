// The codec and the parameters of filter 32013 under fire; meant for -DTAMIS_SANITIZE=ON, which sees what no check can.
//
//   tamis_fuzz [mutations = 200000] [seed = 1] [first mutation = 0]
//
// Every byte-wise prefix and every single-bit flip of valid streams, then random damage. A mutation depends on the
// seed and its own number only, so the one that a failure names can be run alone.

#include <optional>

#include "cases.hpp"
#include "tamis/hdf5/cd_values.hpp"

using namespace tamis;
using namespace tamis::tests;

namespace {

const zfp::Kernel& kernel = tests::kernel();

struct Count {
    std::uint64_t done = 0, taken = 0;

    void add(bool ok) { ++done, taken += ok; }
    void print(const char* what) const {
        std::printf("%-44s %8llu done, %8llu decoded, %8llu refused\n", what, static_cast<unsigned long long>(done),
                    static_cast<unsigned long long>(taken), static_cast<unsigned long long>(done - taken));
    }
};

struct Stream {
    Type type;
    Layout layout;
    Params params;
    std::size_t start, end;           // in bits
    std::vector<std::uint8_t> bytes;  // bits below `start` are ones
};

// C-order index of the first value that a lossy mode cannot represent.
Status first_refused(const Array& array, const Params& params) {
    if (params.reversible()) return {};
    const unsigned width = 8 * static_cast<unsigned>(array.item());
    const std::uint64_t infinity = width == 64 ? 0x7ff0000000000000 : 0x7f800000;
    const std::uint64_t magnitude = ~std::uint64_t{0} >> (65 - width), limit = std::uint64_t{1} << (width - 2);
    const auto values = array.values();
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (zfp::is_float(array.type())) {
            if ((values[i] & magnitude) >= infinity) return {Code::non_finite, i};
        } else {
            const bool negative = values[i] > magnitude;
            const std::uint64_t size = negative ? (~values[i] + 1) & (2 * magnitude + 1) : values[i];
            if (size >= limit) return {Code::integer_range, i};
        }
    }
    return {};
}

// Encode into exactly encode_capacity bytes, that hold garbage before.
std::optional<Stream> encode(const Array& array, const Params& params, std::size_t start) {
    const Layout& layout = array.layout();
    const Exact out(zfp::encode_capacity(array.type(), layout, params, start));
    std::memset(out.data(), 0xff, out.size());
    std::size_t end = 0;
    const Status status = kernel.encode(array.type(), array.origin(), layout, params, out.data(), start, end);
    const Status refused = first_refused(array, params);
    require(status.code == refused.code, "encode refuses what its mode cannot represent, and nothing else");
    require(status || status.where == refused.where, "a refusal names the first value at fault, in C order");
    if (!status) return std::nullopt;
    const std::size_t blocks = layout.blocks();
    require(end - start >= blocks * params.minbits, "each block takes minbits at least");
    require(end - start <= blocks * zfp::block_max_nbits(array.type(), layout.rank, params),
            "no block takes more than block_max_nbits");
    require((end + 7) / 8 <= out.size(), "the stream ends inside encode_capacity");
    const auto kept = static_cast<std::uint8_t>((1u << start % 8) - 1);
    for (std::size_t i = 0; i < start / 8; ++i) require(out.data()[i] == 0xff, "bytes before the start are kept");
    require((out.data()[start / 8] & kept) == kept, "bits before the start are kept");
    require(end % 8 == 0 || out.data()[end / 8] >> end % 8 == 0, "the last byte is filled with zeros");
    return Stream{array.type(), layout, params, start, end, {out.data(), out.data() + (end + 7) / 8}};
}

Status decode(Array& to, const Params& params, std::span<const std::uint8_t> bytes, std::size_t start,
              std::size_t& end) {
    const Exact in(bytes);
    const Status status = kernel.decode(to.type(), to.origin(), to.layout(), params, in.span(), start, end);
    require(status.code == Code::ok || status.code == Code::truncated, "decode succeeds or says truncated");
    require(status || status.where < to.layout().blocks(), "truncated names a block of the array");
    require(!status || end <= 8 * in.size(), "a decoded stream ends inside its bytes");
    require(to.gaps_untouched(), "decode writes nothing between the values");
    return status;
}

// Encode, and decode into memory of another layout.
std::optional<Stream> round_trip(Random& random, const Array& array, const Params& params, std::size_t start) {
    const Layout& layout = array.layout();
    auto stream = encode(array, params, start);
    if (!stream) return stream;
    const auto values = array.values();
    Array same(array.type(), Layout::contiguous(layout.rank, layout.extent));
    std::size_t index = 0, end = 0;
    for_each_offset(same.layout(), [&](std::ptrdiff_t offset) { same.set(offset, values[index++]); });
    require(encode(same, params, start)->bytes == stream->bytes, "the bytes do not depend on strides");
    Array back(array.type(), strided(random, layout.rank, layout.extent));
    require(static_cast<bool>(decode(back, params, stream->bytes, start, end)), "what was encoded is decoded");
    require(end == stream->end, "decode ends where encode ended");
    if (keeps_all(params, array.type(), layout.rank))
        require(back.values() == values, "reversible mode gives every bit back");
    return stream;
}

std::vector<Params> chosen_params(Type type, unsigned rank) {
    std::vector<Params> all(3);
    zfp::set_rate(all[0], 11.3, type, rank);
    zfp::set_precision(all[1], 13);
    zfp::set_accuracy(all[2], zfp::is_float(type) ? 1e-3 : 4);
    all.push_back({3, 41, 20, -20});    // cuts
    all.push_back({170, 230, 64, -9});  // fills up and cuts
    all.push_back({1, zfp::max_bits, 30, 2000});
    all.push_back(zfp::reversible_params());
    all.push_back({90, 120, 30, -2000});  // reversible in name
    all.push_back({700, 900, 64, zfp::min_exp});
    return all;
}

std::vector<Stream> chosen_streams() {
    constexpr std::array<std::size_t, 4> extents[] = {{21, 1, 1, 1}, {9, 5, 1, 1}, {5, 6, 3, 1}, {5, 3, 4, 2}};
    Random random(7);
    std::vector<Stream> streams;
    for (const Type type : all_types)
        for (unsigned rank = 1; rank <= 4; ++rank)
            for (const Params& params : chosen_params(type, rank))
                for (const Values kind : {Values::smooth, Values::zero, Values::any_bits}) {
                    if (kind == Values::any_bits && !params.reversible()) continue;
                    Array array(type, strided(random, rank, extents[rank - 1]));
                    fill(random, array, kind);
                    streams.push_back(*round_trip(random, array, params, streams.size() % 3 * 5));
                }
    return streams;
}

void try_prefixes(const std::vector<Stream>& streams) {
    Count count;
    Random random(8);
    place = {"prefixes of stream", 0};
    for (const Stream& s : streams) {
        std::size_t last_where = 0;
        for (std::size_t length = 0; length <= s.bytes.size(); ++length) {
            Array array(s.type, length % 2 == 0 ? s.layout : strided(random, s.layout.rank, s.layout.extent));
            std::size_t end = 0;
            const Status status = decode(array, s.params, {s.bytes.data(), length}, s.start, end);
            require(static_cast<bool>(status) == (length == s.bytes.size()), "a prefix is truncated, the whole is not");
            require(status || status.where >= last_where, "more bytes do not give fewer blocks");
            if (!status && s.params.minbits == s.params.maxbits && 8 * length >= s.start)
                require(status.where == (8 * length - s.start) / s.params.maxbits,
                        "the block that has no end is named");
            last_where = status.where;
            count.add(static_cast<bool>(status));
        }
        ++place.number;
    }
    count.print("prefixes");
}

void try_flips(const std::vector<Stream>& streams) {
    constexpr std::size_t longest = 300;
    Count count;
    place = {"bit flips of stream", 0};
    for (const Stream& s : streams) {
        std::vector<std::uint8_t> bytes = s.bytes;
        for (std::size_t bit = s.start; bytes.size() <= longest && bit < s.end; ++bit) {
            bytes[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
            Array array(s.type, s.layout);
            std::size_t end = 0;
            count.add(static_cast<bool>(decode(array, s.params, bytes, s.start, end)));
            bytes[bit / 8] = s.bytes[bit / 8];
        }
        ++place.number;
    }
    count.print("bit flips");
}

// Damaged bytes, at times read as another array or with other parameters.
bool damage_stream(Random& random, const std::vector<Stream>& streams) {
    Stream s = random.pick(streams);
    mutate(random, s.bytes);
    if (random.one_in(8)) s.layout = random_layout(random);
    if (random.one_in(8)) s.type = random_type(random);
    if (random.one_in(8) || !zfp::check(s.params, s.type)) s.params = random_params(random, s.type, s.layout.rank);
    if (random.one_in(8)) s.start = random.below(8 * s.bytes.size() + 20);
    Array array(s.type, random.one_in(2) ? s.layout : strided(random, s.layout.rank, s.layout.extent));
    std::size_t end = 0;
    return static_cast<bool>(decode(array, s.params, s.bytes, s.start, end));
}

// Whether to go on: the parameters are sound, and the bytes can hold so many blocks. The plugin asks the same.
bool accepted(const zfp::Header& header, std::size_t nbits) {
    constexpr std::size_t most = 1 << 12;  // values, so that no mutation takes long
    if (!zfp::check(header.params, header.type) || header.layout.blocks() > nbits / header.params.minbits) return false;
    return value_count(header.layout) <= most;
}

// A full-header stream whose header is damaged most of all.
bool damage_header(Random& random, const std::vector<Stream>& streams) {
    const Stream& s = random.pick(streams);
    std::vector<std::uint8_t> bytes(zfp::header_max_nbytes);
    std::size_t nbits = 0;
    require(static_cast<bool>(zfp::pack_header(s.type, s.layout, s.params,
                                               std::span<std::uint8_t, zfp::header_max_nbytes>(bytes), nbits)),
            "a header holds any stream of the tests");
    bytes.resize((nbits + 7) / 8);
    if (!random.one_in(4)) {
        // Past the magic, whose loss is found at once.
        bytes[4 + random.below(bytes.size() - 4)] ^= static_cast<std::uint8_t>(1u << random.below(8));
    } else {
        mutate(random, bytes);
    }
    bytes.insert(bytes.end(), s.bytes.begin() + static_cast<std::ptrdiff_t>(s.start / 8), s.bytes.end());
    if (random.one_in(4)) mutate(random, bytes);
    const Exact in(bytes);
    zfp::Header header;
    if (!zfp::unpack_header(in.span(), header) || !accepted(header, 8 * in.size() - header.nbits)) return false;
    Array array(header.type, header.layout);
    std::size_t end = 0;
    return static_cast<bool>(decode(array, header.params, bytes, header.nbits, end));
}

std::vector<unsigned> requested_values(Random& random) {
    std::vector<unsigned> values(random.below(9));
    for (unsigned& value : values)
        value = random.one_in(3) ? random.word() % 70 : random.one_in(3) ? edge_word(random) : random.word();
    if (!values.empty() && !random.one_in(8)) values[0] = 1 + random.word() % 6;
    const bool rate = !values.empty() && values[0] == 1;
    const double number = rate ? random.between(-1, 5000) / 64.0 : std::ldexp(1.0, random.between(-1100, 1023));
    if (values.size() >= 4 && values[0] % 2 == 1 && !random.one_in(4)) std::memcpy(&values[2], &number, sizeof number);
    return values;
}

std::vector<unsigned> stored_values(Random& random, const std::vector<Stream>& streams) {
    const Stream& s = random.pick(streams);
    unsigned words[hdf5::max_stored];
    std::size_t count = 0;
    require(static_cast<bool>(hdf5::stored_of_params(s.params, s.type, s.layout, words, count)),
            "cd_values hold any stream of the tests");
    std::vector<unsigned> values(words, words + count);
    if (random.one_in(4))
        for (std::size_t i = 1; i < count; ++i) values[i] = zfp::byteswap(values[i]);
    for (std::size_t times = random.below(4); times > 0; --times)
        values[random.below(values.size())] ^= random.one_in(6) ? random.word() : 1u << random.below(32);
    if (random.one_in(6)) values.resize(random.below(10), random.word());
    return values;
}

// cd_values of either form, from the caller of H5Pset_filter to the file and back; and what they encode.
bool damage_cd_values(Random& random, const std::vector<Stream>& streams) {
    const auto words = random.one_in(2) ? requested_values(random) : stored_values(random, streams);
    const Exact memory(words.size() * sizeof(unsigned));
    if (!words.empty()) std::memcpy(memory.data(), words.data(), memory.size());
    const hdf5::CdValues values(reinterpret_cast<const unsigned*>(memory.data()), words.size());
    hdf5::Stored stored;
    const Status parsed = hdf5::parse_stored(values, stored);
    require(!parsed || zfp::check(stored.header.params, stored.header.type), "parsed parameters have passed check");

    const Type type = random_type(random);
    const Layout layout = random_layout(random);
    Params params;
    Status status = hdf5::params_of_request(values, type, layout.rank, params);
    if (status) status = hdf5::check_request(params, type);
    if (!status) return false;
    unsigned out[hdf5::max_stored] = {};
    std::size_t count = 0;
    require(static_cast<bool>(hdf5::stored_of_params(params, type, layout, out, count)), "a sound request is stored");
    require(count == 4 || count == hdf5::max_stored, "four or six words are stored");
    require(hdf5::is_stored({out, count}), "what is stored is known as such");
    require(static_cast<bool>(hdf5::parse_stored({out, count}, stored)), "what is stored is read again");
    require(stored.header.type == type && stored.header.layout.extent == layout.extent && !stored.swapped,
            "type and shape are stored");
    require(stored.header.params.reversible() == params.reversible(), "the mode is stored");
    unsigned again[hdf5::max_stored] = {};
    std::size_t count_again = 0;
    hdf5::stored_of_params(stored.header.params, type, layout, again, count_again);
    require(count == count_again && std::equal(out, out + count, again), "stored parameters mean themselves");

    Array array(type, layout);
    fill(random, array, random_values(random));
    const auto asked = encode(array, params, 0), kept = encode(array, stored.header.params, 0);
    require(asked.has_value() == kept.has_value() && (!asked || asked->bytes == kept->bytes),
            "stored parameters give the bytes of the requested ones");
    return asked.has_value();
}

bool encode_anything(Random& random) {
    const Type type = random_type(random);
    const Layout layout = random_layout(random);
    Array array(type, layout);
    fill(random, array, random_values(random));
    return round_trip(random, array, random_params(random, type, layout.rank), random.below(170)).has_value();
}

void try_mutations(const std::vector<Stream>& streams, std::uint64_t mutations, std::uint64_t seed,
                   std::uint64_t first) {
    Count of_stream, of_header, of_values, of_array;
    for (std::uint64_t i = first; i < first + mutations; ++i) {
        Random random(seed, i);
        place = {"mutation", i};
        switch (random.below(10)) {
            case 0:
                of_values.add(damage_cd_values(random, streams));
                break;
            case 1:
            case 2:
                of_header.add(damage_header(random, streams));
                break;
            case 3:
                of_array.add(encode_anything(random));
                break;
            default:
                of_stream.add(damage_stream(random, streams));
        }
    }
    of_stream.print("damaged streams");
    of_header.print("damaged headers");
    of_values.print("cd_values of chance");
    of_array.print("arrays and parameters of chance, both ways");
}

}  // namespace

int main(int count, char** arguments) {
    name_place_at_death();
    const auto [mutations, seed, first] = fuzz_arguments(count, arguments);
    place = {"making the streams", 0};
    const auto streams = chosen_streams();
    if (mutations != 1) {
        try_prefixes(streams);
        try_flips(streams);
    }
    try_mutations(streams, mutations, seed, first);
    std::printf("%llu mutations of seed %llu: nothing found\n", static_cast<unsigned long long>(mutations),
                static_cast<unsigned long long>(seed));
}
