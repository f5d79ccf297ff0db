// The filters under fire: damaged chunks and damaged parameters; meant for -DTAMIS_SANITIZE=ON.
//
//   tamis_filter_fuzz [mutations of each = 200000] [seed = 1] [first mutation = 0]

#include "filter_cases.hpp"

using namespace tamis;
using namespace tamis::tests;

namespace {

using filters::Code;
using filters::Status;

// Chunks larger than this are not what is looked for.
constexpr std::uint64_t most = 1 << 16;

struct Count {
    std::uint64_t done = 0, taken = 0;

    void add(bool ok) { ++done, taken += ok; }
    void print(const char* what) const {
        std::printf("%-24s %8llu done, %8llu taken, %8llu refused\n", what, static_cast<unsigned long long>(done),
                    static_cast<unsigned long long>(taken), static_cast<unsigned long long>(done - taken));
    }
};

void damage_words(Random& random, Words& values) {
    constexpr unsigned edges[] = {0,  1,  2,  3,  4,          7,          8,          9,
                                  16, 63, 64, 65, 0x7fffffff, 0x80000000, 0xfffffff8, 0xffffffff};
    for (std::size_t times = random.below(3); times > 0; --times) {
        const std::size_t at = random.below(values.size());
        switch (random.below(6)) {
            case 0:
                values[at] = random.word();
                break;
            case 1:
                values[at] ^= 1u << random.below(32);
                break;
            case 2:
                values[at] += random.one_in(2) ? 1u : ~0u;
                break;
            case 3:
                values.erase(values.begin() + static_cast<std::ptrdiff_t>(at));
                if (values.empty()) values.push_back(0);
                break;
            case 4:
                values.insert(values.begin() + static_cast<std::ptrdiff_t>(at), random.pick(values));
                break;
            default:
                values[at] = edges[random.below(std::size(edges))];
        }
    }
}

// What a caller says that a chunk has: mostly what its parameters say, if that is within reason.
std::size_t stated_nbytes(Random& random, const Words& values) {
    const std::uint64_t product = values.size() > 4 ? std::uint64_t{values[2]} * values[4] : 0;
    return random.one_in(8) || product > most ? random.below(600) : static_cast<std::size_t>(product);
}

Bytes damaged(Random& random, Bytes bytes) {
    if (!random.one_in(4)) mutate(random, bytes);
    return bytes;
}

bool damage_nbit(Random& random) {
    Words values = nbit_values(random);
    const Memory plain(random_bytes(random, std::size_t{values[2]} * values[4]));
    filters::nbit::Chunk chunk;
    require(static_cast<bool>(filters::nbit::survey(values, plain.span().size(), chunk)), "a sound type is taken");
    const Memory packed(filters::nbit::encoded_nbytes(chunk));
    filters::nbit::encode(values, chunk, plain.data(), packed.span());

    damage_words(random, values);
    if (!random.one_in(4)) values[0] = static_cast<unsigned>(values.size());
    const Memory in(damaged(random, packed.bytes())), again(damaged(random, plain.bytes()));
    if (filters::nbit::survey(values, again.span().size(), chunk) && !chunk.verbatim) {
        const Memory out(filters::nbit::encoded_nbytes(chunk));
        filters::nbit::encode(values, chunk, again.data(), out.span());
    }
    const std::size_t nbytes = stated_nbytes(random, values);
    if (!filters::nbit::survey(values, nbytes, chunk) || chunk.verbatim) return false;
    const Status status = filters::nbit::check_length(chunk, in.span().size());
    require(status || (status.code == Code::truncated && status.where > in.span().size()), "truncated says how much");
    if (!status) return false;
    const Memory out(nbytes);
    filters::nbit::decode(values, chunk, in.span(), out.span());
    return true;
}

bool encode_scaleoffset(const Words& values, const Bytes& bytes, Bytes* packed) {
    filters::scaleoffset::Params params;
    filters::scaleoffset::Plan plan;
    const Memory in(bytes);
    if (!filters::scaleoffset::parse(values, params) || params.verbatim()) return false;
    if (!filters::scaleoffset::check_nbytes(params, bytes.size())) return false;
    if (!filters::scaleoffset::plan(params, in.data(), plan)) return false;
    const Memory out(plan.encoded_nbytes);
    filters::scaleoffset::encode(params, plan, in.data(), out.span());
    if (packed != nullptr) *packed = out.bytes();
    // As if another thread had written: other values under the same plan.
    for (std::size_t i = 0; i < bytes.size(); ++i) in.data()[i] = static_cast<std::uint8_t>(~in.data()[i]);
    filters::scaleoffset::encode(params, plan, in.data(), out.span());
    return true;
}

bool damage_scaleoffset(Random& random) {
    Words values = scaleoffset_values(random);
    const Bytes plain = items_for(random, values);
    Bytes packed = random_bytes(random, 40);
    encode_scaleoffset(values, plain, &packed);

    damage_words(random, values);
    encode_scaleoffset(values, damaged(random, plain), nullptr);
    const Memory in(damaged(random, packed));
    const std::size_t nbytes = stated_nbytes(random, values);
    filters::scaleoffset::Params params;
    filters::scaleoffset::Header header;
    if (!filters::scaleoffset::parse(values, params) || params.verbatim()) return false;
    if (!filters::scaleoffset::check_nbytes(params, nbytes)) return false;
    const Status status = filters::scaleoffset::open(params, in.span(), header);
    require(status || status.code != Code::truncated || status.where > in.span().size(), "truncated says how much");
    if (!status) return false;
    const Memory out(nbytes);
    filters::scaleoffset::decode(params, header, in.span(), out.data());
    return true;
}

std::size_t any_size(Random& random, std::size_t usual) {
    constexpr std::size_t edges[] = {0, filters::max_itemsize, filters::max_itemsize + 1, std::size_t{1} << 63,
                                     ~std::size_t{0}};
    return random.one_in(8) ? edges[random.below(std::size(edges))] : random.below(usual);
}

bool shuffle_anything(Random& random) {
    const Bytes data = random_bytes(random, random.below(random.one_in(20) ? 9000 : 500));
    const std::size_t itemsize = any_size(random, random.one_in(2) ? 20 : 600), block = 8 * any_size(random, 40);
    const Memory in(data), out(data.size()), back(data.size());
    filters::fletcher32(in.span());
    if (!filters::check_itemsize(itemsize)) return false;
    filters::shuffle(in.span(), itemsize, out.data());
    filters::unshuffle(out.span(), itemsize, back.data());
    require(back.bytes() == data, "unshuffle undoes shuffle");
    if (!filters::check_bitshuffle(data.size() / itemsize * itemsize, itemsize, block)) return false;
    const Memory whole(
        Bytes(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(data.size() / itemsize * itemsize)));
    const Memory planes(whole.span().size()), again(whole.span().size());
    filters::bitshuffle(whole.span(), itemsize, block, planes.data());
    filters::bitunshuffle(planes.span(), itemsize, block, again.data());
    require(again.bytes() == whole.bytes(), "bitunshuffle undoes bitshuffle");
    return true;
}

}  // namespace

int main(int count, char** arguments) {
    name_place_at_death();
    const auto [mutations, seed, first] = fuzz_arguments(count, arguments);
    const auto damage = [&](const char* what, bool (*once)(Random&)) {
        Count found;
        for (std::uint64_t i = first; i < first + mutations; ++i) {
            Random random(seed, i);
            place = {what, i};
            found.add(once(random));
        }
        found.print(what);
    };
    damage("nbit", damage_nbit);
    damage("scaleoffset", damage_scaleoffset);
    damage("shuffle, bitshuffle", shuffle_anything);
    std::printf("%llu mutations of seed %llu: nothing found\n", static_cast<unsigned long long>(mutations),
                static_cast<unsigned long long>(seed));
}
