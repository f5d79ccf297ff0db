// The plugin's codec as netCDF gets it, by NCZ_get_codec_info, under fire and without libnetcdf: JSON, parameters,
// variables, and the chunks of a Zarr store.
//
//   tamis_nczarr_fuzz [mutations = 200000] [seed = 1] [first mutation = 0]
//
// A mutation depends on the seed and its own number only.

#include <string>

#include "fake_netcdf.hpp"
#include "hdf5/codec_json.hpp"
#include "plugin_cases.hpp"

extern "C" const void* NCZ_get_codec_info();

using namespace tamis;
using namespace tamis::tests;

namespace {

const hdf5::CodecClass& codec() { return *static_cast<const hdf5::CodecClass*>(NCZ_get_codec_info()); }

// What a call must do: succeed without a message, or fail with one and leave alone what it was given.
bool succeeds(int status) {
    const unsigned messages = fake.messages;
    fake.messages = 0;
    require(status == hdf5::nc_noerr || status == hdf5::nc_efilter, "a status is one of netCDF's");
    require(messages == (status != hdf5::nc_noerr), "a failure has one message, a success none");
    return status == hdf5::nc_noerr;
}

bool read_json(const std::string& json, std::vector<unsigned>& words) {
    const Exact text(json.size() + 1);  // so that a sanitizer sees who reads beyond it
    std::memcpy(text.data(), json.c_str(), json.size() + 1);
    std::size_t count = 77;
    unsigned* values = nullptr;
    if (!succeeds(codec().codec_to_hdf5(reinterpret_cast<const char*>(text.data()), &count, &values))) {
        require(count == 77 && values == nullptr, "a failure gives nothing");
        return false;
    }
    words.assign(values, values + count);
    std::free(values);
    return true;
}

bool write_json(const std::vector<unsigned>& words, std::string& json) {
    const Exact values(words.size() * sizeof(unsigned));
    if (!words.empty()) std::memcpy(values.data(), words.data(), values.size());
    char* text = nullptr;
    if (!succeeds(codec().hdf5_to_codec(words.size(), reinterpret_cast<const unsigned*>(values.data()), &text))) {
        require(text == nullptr, "a failure gives nothing");
        return false;
    }
    json = text;
    std::free(text);
    require(json.size() < sizeof(hdf5::Json) - 1, "the longest JSON fits");
    return true;
}

std::vector<unsigned> random_request(Random& random) {
    std::vector<unsigned> words(random.one_in(10) ? random.below(20) : 4 + random.below(3));
    for (unsigned& word : words) word = random.one_in(3) ? edge_word(random) : random.word() % 70;
    if (!words.empty() && !random.one_in(8)) words[0] = 1 + random.word() % 5;
    const double number = random.one_in(4) ? std::ldexp(1 + random.between(0, 1), random.between(-1100, 1023))
                                           : random.between(0, 5000) / 64.0;
    if (words.size() >= 4 && words[0] % 2 == 1 && !random.one_in(8)) std::memcpy(&words[2], &number, sizeof number);
    return words;
}

void damage_words(Random& random, std::vector<unsigned>& words) {
    for (std::size_t times = 1 + random.below(3); times > 0 && !words.empty(); --times)
        words[random.below(words.size())] ^= random.one_in(6) ? random.word() : 1u << random.below(32);
    if (random.one_in(10)) words.resize(random.below(10), random.word());
}

// Parameters to JSON and back.
bool try_words(Random& random) {
    std::vector<unsigned> words = random.one_in(2) ? random_request(random) : random_case(random).words;
    if (random.one_in(2)) damage_words(random, words);
    std::string json, again;
    std::vector<unsigned> back;
    if (!write_json(words, json)) return false;
    if (!read_json(json, back)) {
        require(hdf5::is_stored(words), "what is requested is written so that it is read");
        return false;  // a chunk or parameters that set_local refuses
    }
    hdf5::Stored stored;
    if (hdf5::is_stored(words) && hdf5::parse_stored(words, stored))
        for (unsigned axis = 0; axis < stored.header.layout.rank; ++axis)
            if (stored.header.layout.extent[axis] == 1) return true;  // which set_local leaves out
    require(write_json(back, again) && again == json, "JSON that was written is read as what it says");
    return true;
}

// Anybody's metadata.
bool try_json(Random& random) {
    std::string json = "{\"id\": \"h5z_zfp\", \"mode\": \"fixed_accuracy\", \"tolerance\": 0.5}";
    const std::vector<unsigned> words = random.one_in(2) ? random_request(random) : random_case(random).words;
    if (!random.one_in(8)) write_json(words, json);
    const std::vector<std::string> pieces = {
        "{",   "}",    "[",       "]", ",",    ":",          "\"",  " ",      "1e400",         "-", "inf",
        "nan", "0x10", "\\u0000", "5", "null", "4294967296", "1.5", "1e-320", "\"tolerance\"", "\n"};
    for (std::size_t times = random.below(4); times > 0; --times) {
        const std::size_t at = random.below(json.size() + 1), length = random.below(json.size() - at + 1);
        if (random.one_in(3))
            json.replace(at, random.one_in(2) ? 0 : std::min<std::size_t>(length, 4), random.pick(pieces));
        else if (random.one_in(3))
            json.insert(at, json.substr(random.below(json.size() + 1), 1 + random.below(20)));
        else if (random.one_in(3))
            json.resize(at);
        else if (at < json.size())
            json[at] = static_cast<char>(random.one_in(2) ? random.byte() : json[at] ^ 1 << random.below(8));
    }
    std::vector<unsigned> parsed;
    return read_json(json.c_str(), parsed);
}

int random_nc_type(Random& random) {
    constexpr int usual[] = {hdf5::nc_float, hdf5::nc_double, hdf5::nc_int, hdf5::nc_int64};
    return random.one_in(5) ? random.between(-1, 20) : usual[random.below(4)];
}

void make_variable(Random& random) {
    variable = {};
    variable.type = random_nc_type(random);
    variable.chunk.resize(random.one_in(20) ? random.below(40) : 1 + random.below(4));
    const unsigned bits = 1 + static_cast<unsigned>(random.below(4));
    for (std::size_t& extent : variable.chunk) extent = random.one_in(4) ? 1 : 1 + random.bits() % (1ULL << bits);
    if (random.one_in(20) && !variable.chunk.empty()) variable.chunk[0] = random.bits() >> random.below(64);
    variable.filters.assign(random.one_in(4) ? random.below(4) : 1, hdf5::filter_id);
    for (unsigned& id : variable.filters)
        if (random.one_in(3)) id = 1 + random.word() % 3;
    if (!random.one_in(8) && !variable.filters.empty()) variable.filters[0] = hdf5::filter_id;
    if (random.one_in(20)) variable.filters.resize(random.below(100), 2);
    variable.storage = random.one_in(20) ? 1 : hdf5::nc_chunked;
    variable.endian = random.one_in(10) ? hdf5::nc_endian_big : random.between(0, 1);
    variable.no_fill = random.one_in(2);
    variable.fill = random.one_in(2) ? random.bits()
                                     : bits_of(variable.type == hdf5::nc_double ? Type::float64 : Type::float32, -999);
    if (random.one_in(20)) variable.refused = random.between(1, 5);
}

// A chunk of a variable, through the filter and back: the values, or what accuracy mode promises.
void filter_chunk(Random& random, const std::vector<unsigned>& words) {
    hdf5::Stored stored;
    require(static_cast<bool>(hdf5::parse_stored(words, stored)) && stored.in_zarr,
            "a filter learns that it is in Zarr");
    const auto& [type, layout, params, nbits] = stored.header;
    if (value_count(layout) > 5000) return;
    const Case c{type, layout, params, words};
    const auto values = random_chunk(random, c);
    Chunk chunk(values, 0);
    if (!chunk.apply(0, words)) {
        require(!hdf5::may_be_unfiltered(stored), "a chunk that zfp cannot take stays as it is");
        return;
    }
    std::vector<std::uint8_t> bytes = chunk.bytes();
    const bool left = bytes == values && hdf5::may_be_unfiltered(stored);
    require(left || bytes.size() != values.size() || !hdf5::may_be_unfiltered(stored),
            "no stream is as long as values");
    require(chunk.apply(hdf5::flag_reverse, words), "what was filtered is read");
    if (left || keeps_all(params, type, layout.rank)) require(chunk.bytes() == values, "every bit comes back");
    if (!left && promises_accuracy(c) && stored.proven) require_promise(c, stored.fill, values, chunk.bytes());
    mutate(random, bytes);
    Chunk damaged(bytes, 0);
    if (damaged.apply(hdf5::flag_reverse, words))
        require(damaged.bytes().size() == values.size(), "a chunk has the size that the array needs");
}

// What modify_parameters makes of the words that a variable has: those that it shows, and those of its chunks.
bool modify(std::vector<unsigned>& words, std::vector<unsigned>& used) {
    const std::vector<unsigned> before = words;
    std::size_t visible_count = words.size(), working_count = 0;
    auto* visible = static_cast<unsigned*>(std::malloc(words.size() * sizeof(unsigned)));
    if (!words.empty()) std::memcpy(visible, words.data(), words.size() * sizeof(unsigned));
    unsigned* working = nullptr;
    const bool ok = succeeds(codec().modify_parameters(65536, 7, &visible_count, &visible, &working_count, &working));
    words.assign(visible, visible + visible_count);
    used.assign(working, working + working_count);
    std::free(visible);
    std::free(working);
    require(ok || (words == before && used.empty()), "a failure changes nothing");
    return ok;
}

// A variable of a new store, or of one that is opened.
bool try_variable(Random& random) {
    make_variable(random);
    std::vector<unsigned> words = random.one_in(3) ? random_case(random).words : random_request(random);
    std::string json, same;
    if (random.one_in(3) && (!write_json(words, json) || !read_json(json, words))) return false;
    if (random.one_in(4)) damage_words(random, words);
    std::vector<unsigned> used, reopened, used_then;
    if (!modify(words, used)) return false;
    require(words.size() <= hdf5::max_stored && write_json(words, json), "what a user sees is what HDF5 stores");
    require(read_json(json, reopened) && modify(reopened, used_then), "a store that was written is opened");
    require(write_json(reopened, same) && same == json, "and its metadata stay");
    const bool is_unsigned = variable.type == hdf5::nc_uint || variable.type == hdf5::nc_uint64;
    hdf5::Stored stored;
    require(static_cast<bool>(hdf5::parse_stored(words, stored)), "stored parameters are sound");
    require(!is_unsigned || stored.header.params.lossless(), "unsigned integers are kept without loss only");
    filter_chunk(random, used);
    return true;
}

struct Count {
    unsigned long long done = 0, taken = 0;

    void add(bool ok) { ++done, taken += ok; }
    void print(const char* what) const {
        std::printf("%-44s %8llu done, %8llu taken,   %8llu refused\n", what, done, taken, done - taken);
    }
};

}  // namespace

int main(int count, char** arguments) {
    name_place_at_death();
    const auto [mutations, seed, first] = fuzz_arguments(count, arguments);
    stderr = std::fopen("/dev/null", "w");  // where the codec's messages go
    require(codec().version == 1 && codec().sort == 1, "the codec is netCDF's first class and sort");
    require(codec().filter == hdf5::filter_id && std::strcmp(codec().id, hdf5::codec_id) == 0, "the codec is 32013");
    Count jsons, words, variables;
    for (std::uint64_t i = first; i < first + mutations; ++i) {
        Random random(seed, i);
        place = {"mutation", i};
        fake = {};
        switch (random.below(4)) {
            case 0:
                jsons.add(try_json(random));
                break;
            case 1:
                words.add(try_words(random));
                break;
            default:
                variables.add(try_variable(random));
        }
    }
    jsons.print("damaged JSON");
    words.print("parameters to JSON and back");
    variables.print("variables, with a chunk");
    std::printf("%llu mutations of seed %llu: nothing found\n", static_cast<unsigned long long>(mutations),
                static_cast<unsigned long long>(seed));
}
