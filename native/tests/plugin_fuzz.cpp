// The filter's three callbacks as HDF5 gets them, by H5PLget_plugin_info, under fire and without libhdf5.
//
//   tamis_plugin_fuzz [mutations = 200000] [seed = 1] [first mutation = 0]
//
// A mutation depends on the seed and its own number only.

#include "plugin_cases.hpp"

using namespace tamis;
using namespace tamis::tests;

namespace {

// As a machine of the other byte order leaves the words: all but the first.
void swap_words(std::vector<unsigned>& words) {
    for (std::size_t i = 1; i < words.size() && words[i] != hdf5::unproven_word; ++i)
        words[i] = zfp::byteswap(words[i]);
}

void damage_words(Random& random, std::vector<unsigned>& words) {
    for (std::size_t times = 1 + random.below(3); times > 0; --times) {
        if (words.empty()) return;
        words[random.below(words.size())] ^= random.one_in(6) ? random.word() : 1u << random.below(32);
        if (random.one_in(10)) words.resize(random.below(10), random.word());
    }
}

// Half of all chunks get a fill value, one of their own or another, which then stands at more places.
std::optional<std::uint64_t> add_fill(Random& random, Case& c, std::vector<std::uint8_t>& values) {
    if (!promises_accuracy(c) || c.words.size() != 4 || random.one_in(2)) return std::nullopt;
    const std::size_t item = zfp::item_nbytes(c.type), count = values.size() / item;
    std::uint64_t bits = 0;
    const std::uint64_t other = bits_of(c.type, random.one_in(2) ? -999 : 0);
    std::memcpy(
        &bits,
        random.one_in(2) ? values.data() + item * random.below(count) : reinterpret_cast<const std::uint8_t*>(&other),
        item);
    for (std::size_t times = random.below(3) * count / 4; times > 0; --times)
        std::memcpy(values.data() + item * random.below(count), &bits, item);
    c.words.push_back(static_cast<unsigned>(bits));
    c.words.push_back(static_cast<unsigned>(bits >> 32));
    return bits;
}

// There and back with sound words, then back again from damaged bytes and words.
bool try_filter(Random& random) {
    Case c = random_case(random);
    auto values = random_chunk(random, c);
    const auto fill = add_fill(random, c, values);
    const bool proven = fill || c.words.size() != 4 || !random.one_in(8);
    if (!proven) c.words.push_back(hdf5::unproven_word);
    const bool swapped = !fill && random.one_in(4);
    if (swapped) swap_words(c.words);
    Chunk chunk(values, random.one_in(3) ? random.below(50) : 0);
    const unsigned other_flags = random.one_in(2) ? hdf5::flag_optional : 0;
    if (!chunk.apply(other_flags, c.words)) {
        require(!c.params.reversible(), "reversible mode takes any values");
        return false;
    }
    std::vector<std::uint8_t> stream = chunk.bytes();
    require(!promises_accuracy(c) || !proven || stream.size() != values.size(),
            "its size says that a chunk is a stream");
    require(chunk.apply(other_flags | hdf5::flag_reverse, c.words), "what was filtered is read");
    require(chunk.bytes().size() == values.size(), "a chunk comes back in its size");
    if (keeps_all(c.params, c.type, c.layout.rank))
        require(chunk.bytes() == values, "reversible mode gives every bit back, on either byte order");
    if (promises_accuracy(c) && proven && !swapped) require_promise(c, fill, values, chunk.bytes());

    if (!random.one_in(3)) mutate(random, stream);
    if (random.one_in(2)) damage_words(random, c.words);
    if (random.one_in(20)) c.words = random_case(random).words;
    hdf5::Stored stored;
    const bool known = static_cast<bool>(hdf5::parse_stored(c.words, stored));
    Chunk damaged(stream, random.one_in(3) ? random.below(50) : 0);
    if (!damaged.apply(hdf5::flag_reverse, c.words)) return false;
    require(known, "parameters that cannot be parsed are refused");
    require(damaged.bytes().size() == value_count(stored.header.layout) * zfp::item_nbytes(stored.header.type),
            "a chunk has the size that its parameters name");
    return true;
}

// Bytes to write that are not of the size, or words that are not what set_local left.
bool try_damaged_write(Random& random) {
    Case c = random_case(random);
    auto values = random_chunk(random, c);
    if (random.one_in(3)) mutate(random, values);
    if (!random.one_in(3)) damage_words(random, c.words);
    Chunk chunk(values, 0);
    return chunk.apply(random.one_in(2) ? hdf5::flag_optional : 0, c.words);
}

bool try_noise(Random& random) {
    std::vector<unsigned> words(random.below(9));
    for (unsigned& word : words) word = random.word();
    if (words.size() > 1 && random.one_in(2)) words[1] = 0x0570667a;
    std::vector<std::uint8_t> bytes(random.below(200));
    for (auto& byte : bytes) byte = random.byte();
    Chunk chunk(bytes, random.below(3));
    return chunk.apply(random.word(), words);
}

std::vector<unsigned> request(Random& random) {
    if (random.one_in(6)) return {};
    if (random.one_in(3)) {
        Case old = random_case(random);  // of a copied property list
        if (random.one_in(3)) damage_words(random, old.words);
        return old.words;
    }
    std::vector<unsigned> words(random.one_in(20) ? random.below(100) : random.below(9));
    for (unsigned& word : words)
        word = random.one_in(3) ? random.word() % 70 : random.one_in(3) ? edge_word(random) : random.word();
    if (!words.empty() && !random.one_in(8)) words[0] = 1 + random.word() % 6;
    const double number = random.between(-1, 5000) / 64.0;
    if (words.size() >= 4 && words[0] % 2 == 1 && !random.one_in(4)) std::memcpy(&words[2], &number, sizeof number);
    return words;
}

// H5Dcreate: can_apply, then set_local.
bool try_creation(Random& random) {
    fake = {};
    fake.type = random.one_in(30) ? -1 : random.between(1, fake_types);
    fake.rank = random.one_in(20) ? random.between(-1, 40) : random.between(1, 5);
    const int bits = random.between(1, 14);
    for (int axis = 0; axis < fake.rank; ++axis)
        fake.extents.push_back(random.one_in(3) ? 1 : 1 + random.bits() % (1ULL << bits));
    if (random.one_in(20) && fake.rank > 0) fake.extents[0] = 1 | random.bits() >> random.below(64);
    fake.fill_status = random.between(0, 2);
    fake.fill = random.one_in(2) ? random.bits() : bits_of(fake.type == 1 ? Type::float32 : Type::float64, -999);
    fake.has_property = random.one_in(5);
    if (random.one_in(3)) {
        fake.controls.resize(random.one_in(4) ? 1 + random.below(40) : 24);
        for (auto& byte : fake.controls) byte = random.byte();
        const unsigned mode = random.one_in(5) ? random.word() : 1 + random.word() % 6;
        if (fake.controls.size() >= sizeof mode) std::memcpy(fake.controls.data(), &mode, sizeof mode);
    }
    fake.refuses_extents = random.one_in(50);
    fake.refuses_values = random.one_in(50);
    fake.refuses_change = random.one_in(50);
    for (std::size_t others = random.one_in(10) ? random.below(3) : 0; others > 0; --others)
        fake.pipeline.push_back({random.one_in(2) ? 1 : hdf5::filter_id, 0, {6}});
    for (const int moved : {3, 2})  // as netCDF does
        if (random.one_in(8)) fake.pipeline.push_back({moved, 1, {}});
    if (!random.one_in(50))
        fake.pipeline.push_back({hdf5::filter_id, random.one_in(2) ? hdf5::flag_optional : 0, request(random)});
    if (random.one_in(3)) fake.pipeline.push_back({2, 1, {8}});
    const auto zfp = std::ranges::find_if(fake.pipeline, [](const auto& one) { return one.id == hdf5::filter_id; });
    const unsigned flags = zfp != fake.pipeline.end() ? zfp->flags : 0;

    const int applies = filter().can_apply(1, fake.type, 1);
    require(applies == 1 || applies == -1,
            "can_apply says yes or fails: a mere no is passed over for optional filters");
    require(fake.messages == (applies < 0), "can_apply has one message if it fails");
    fake.messages = 0;
    const int result = filter().set_local(1, fake.type, 1);
    require(result == 0 || result == -1, "set_local succeeds or fails");
    require(fake.messages == (result < 0), "set_local has one message if it fails");
    if (result < 0) return false;
    require(applies == 1, "set_local takes nothing that can_apply refuses");
    require(fake.pipeline[0].id == hdf5::filter_id, "zfp is first");
    hdf5::Stored stored;
    require(static_cast<bool>(hdf5::parse_stored(fake.pipeline[0].values, stored)), "set_local stores sound values");
    const bool may_fail = fake.fill_status == hdf5::fill_user_defined && !stored.header.params.lossless();
    require(fake.pipeline[0].flags == (may_fail ? flags | hdf5::flag_optional : flags),
            "zfp keeps its flags, and is optional where it may fail beside the fill value");
    std::size_t values = 1;
    for (const auto extent : fake.extents) values *= extent;
    require(value_count(stored.header.layout) == values, "set_local stores the shape of the chunk");
    require(fake.pipeline[0].values.size() <= hdf5::max_stored, "H5Z-ZFP reads so many words");
    require(!stored.fill || (fake.fill_status == hdf5::fill_user_defined && !fake.has_property),
            "a fill value is noted that somebody chose");
    require(stored.proven || fake.has_property || !fake.pipeline[0].values.empty(), "a proof is left out on demand");
    const bool is_unsigned = fake.type > 8;
    require(!is_unsigned || stored.header.params.reversible(), "unsigned integers are kept without loss only");
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
    require(H5PLget_plugin_type() == 0, "the plugin is a filter");
    require(filter().version == 1 && filter().id == 32013, "the filter is 32013, in the second form of its class");
    require(filter().encoder_present == 1 && filter().decoder_present == 1, "the filter reads and writes");
    Count filters, writes, noises, creations;
    for (std::uint64_t i = first; i < first + mutations; ++i) {
        Random random(seed, i);
        place = {"mutation", i};
        switch (random.below(6)) {
            case 0:
                creations.add(try_creation(random));
                break;
            case 1:
                noises.add(try_noise(random));
                break;
            case 2:
                writes.add(try_damaged_write(random));
                break;
            default:
                filters.add(try_filter(random));
        }
    }
    filters.print("chunks there, back, and damaged");
    writes.print("damaged chunks to write");
    noises.print("noise");
    creations.print("datasets created");
    std::printf("%llu mutations of seed %llu: nothing found\n", static_cast<unsigned long long>(mutations),
                static_cast<unsigned long long>(seed));
}
