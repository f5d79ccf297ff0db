// Many chunks in one call, there and back, and under fire: damaged bytes, files that end too early, tables that lie.
//
//   tamis_chunk_fuzz [mutations = 200000] [seed = 1] [first mutation = 0]

#include <cstdio>

#include "cases.hpp"
#include "dataset_cases.hpp"
#include "filter_cases.hpp"
#include "tamis/chunks/read.hpp"
#include "tamis/chunks/write.hpp"
#include "tamis/chunks/write_lossless.hpp"

using namespace tamis;
using namespace tamis::tests;

namespace {

using chunks::Extents;
using chunks::Shape;
using Origin = std::vector<std::int64_t>;

const chunks::Libdeflate no_libdeflate;

// Call `visit` with the index of each item of a box.
template <class Visit>
void for_each_index(const Shape& box, Visit visit) {
    Extents at{};
    for (std::size_t left = box.count(); left > 0; --left) {
        visit(at);
        for (unsigned axis = box.rank; axis-- > 0 && ++at[axis] == box.extent[axis];) at[axis] = 0;
    }
}

std::size_t offset_of(const Extents& at, const chunks::Strides& strides, unsigned rank) {
    std::ptrdiff_t offset = 0;
    for (unsigned axis = 0; axis < rank; ++axis) offset += static_cast<std::ptrdiff_t>(at[axis]) * strides[axis];
    return static_cast<std::size_t>(offset);
}

// An array that lies somehow in memory of exactly its size: C order, or Fortran's, with gaps or without.
struct Lying {
    Lying(Random& random, const Shape& extents, std::size_t itemsize) : shape(extents), memory(0) {
        auto step = static_cast<std::ptrdiff_t>(itemsize);
        const bool reversed = random.one_in(4);
        for (unsigned i = 0; i < shape.rank; ++i) {
            const unsigned axis = reversed ? i : shape.rank - 1 - i;
            if (random.one_in(6)) step += static_cast<std::ptrdiff_t>(itemsize);
            strides[axis] = step;
            step *= static_cast<std::ptrdiff_t>(shape.extent[axis]);
        }
        std::size_t size = itemsize;
        for (unsigned axis = 0; axis < shape.rank; ++axis)
            size += (shape.extent[axis] - 1) * static_cast<std::size_t>(strides[axis]);
        memory = Exact(size);
        std::fill_n(memory.data(), size, std::uint8_t{0});
    }

    template <class Byte>
    chunks::Place<Byte> place(const Extents& start = {}) const {
        return {memory.data(), shape, strides, start};
    }
    std::uint8_t* at(const Extents& index) const { return memory.data() + offset_of(index, strides, shape.rank); }

    Shape shape;
    chunks::Strides strides{};
    Exact memory;
};

// A dataset in chunks, and what reading it must give.
template <class Scalar>
class Dataset {
public:
    explicit Dataset(Random& random)
        : random_(random),
          chunk_(some_shape(7)),
          shape_(some_array()),
          pipeline_(chunk_, sizeof(Scalar), no_libdeflate),
          values_(random, shape_, sizeof(Scalar)) {
        fill();
        add_filters();
        store();
    }

    void check() {
        const chunks::Table table{origins_, offsets_, nbytes_, masks_};
        require(file_.hold(bytes_), "it is written");
        Extents start{};
        Shape part{shape_.rank, {}};
        for (unsigned axis = 0; axis < shape_.rank; ++axis) {
            start[axis] = random_.below(shape_.extent[axis]);
            part.extent[axis] = 1 + random_.below(shape_.extent[axis] - start[axis]);
        }
        const Lying out(random_, part, sizeof(Scalar));
        const auto largest = *std::max_element(nbytes_.begin(), nbytes_.end());
        if (static_cast<std::size_t>(largest) > pipeline_.capacity()) return;  // blocks that are mostly padding
        const auto done = read(table, out.place<std::uint8_t>(start), 1 + random_.below(3));
        require(std::find(done.begin(), done.end(), 0) == done.end(), "what was stored is read");
        for_each_index(part, [&](Extents at) {
            const Scalar now = load(out.at(at));
            for (unsigned axis = 0; axis < part.rank; ++axis) at[axis] += start[axis];
            const Scalar was = load(values_.at(at));
            const double allowed = allowed_[offset_of(at, shape_.contiguous(1), shape_.rank)];
            require(std::memcmp(&was, &now, sizeof was) == 0 ||
                        std::abs(static_cast<double>(was) - static_cast<double>(now)) <= allowed,
                    "values are as far off as was said");
        });
    }

    // Whether all chunks are read nevertheless.
    bool check_damaged() {
        Bytes bytes = bytes_;
        if (random_.one_in(2)) mutate(random_, bytes);
        damage_table();
        require(file_.hold(bytes), "it is written");
        const chunks::Table table{origins_, offsets_, nbytes_, masks_};
        const Lying out(random_, shape_, sizeof(Scalar));
        const auto done = read(table, out.place<std::uint8_t>(), 1);  // chunks of a damaged table may overlap
        return std::find(done.begin(), done.end(), 0) == done.end();
    }

private:
    std::vector<char> read(const chunks::Table& table, const chunks::Place<std::uint8_t>& place, std::size_t threads) {
        return chunks::read(pipeline_, kernel(), file_.number(), table, place, threads);
    }

    static Scalar load(const std::uint8_t* at) {
        Scalar value;
        std::memcpy(&value, at, sizeof value);
        return value;
    }

    Shape some_shape(std::size_t most) {
        Shape shape{1 + below(random_, 4), {}};
        for (unsigned axis = 0; axis < shape.rank; ++axis) shape.extent[axis] = 1 + random_.below(most);
        shape.extent[random_.below(shape.rank)] += 1;  // one axis is longer than 1
        return shape;
    }
    Shape some_array() {
        Shape shape{chunk_.rank, {}};
        for (unsigned axis = 0; axis < shape.rank; ++axis)
            shape.extent[axis] = 1 + random_.below((random_.one_in(10) ? 6 : 2) * chunk_.extent[axis]);
        return shape;
    }

    void fill() {
        const std::size_t odd = random_.one_in(3) ? 40 : 100000;
        for_each_index(shape_, [&](const Extents& at) {
            Scalar value = static_cast<Scalar>(random_.between(-1000, 1000)) / 8;
            if (random_.one_in(odd)) value = random_.one_in(2) ? std::numeric_limits<Scalar>::quiet_NaN() : mark_;
            if (random_.one_in(odd)) value = Scalar{1e30f};
            std::memcpy(values_.at(at), &value, sizeof value);
        });
    }

    Params some_params(Type type, unsigned rank) {
        Params params;
        switch (random_.below(4)) {
            case 0:
                require(static_cast<bool>(zfp::set_rate(params, random_.between(1, 20), type, rank)), "it is a rate");
                return params;
            case 1:
                zfp::set_precision(params, 1 + below(random_, 40));
                return params;
            case 2:
                zfp::set_accuracy(params, std::ldexp(1.0, random_.between(-10, 8)));
                return params;
            default:
                return zfp::reversible_params();
        }
    }

    void add_filters() {
        std::array<std::size_t, zfp::max_rank> extent{1, 1, 1, 1};
        unsigned rank = 0;
        for (unsigned axis = chunk_.rank; axis-- > 0;)
            if (chunk_.extent[axis] > 1) extent[rank++] = chunk_.extent[axis];
        const Type type = zfp::Traits<Scalar>::type;
        if (!random_.one_in(4)) {
            unsigned words[hdf5::max_stored] = {};
            std::size_t count = 0;
            require(static_cast<bool>(hdf5::stored_of_params(some_params(type, rank), type,
                                                             Layout::contiguous(rank, extent), words, count)),
                    "parameters are stored");
            pipeline_.add(chunks::zfp_id, {words, count});
            zfp_ = true;
        }
        const unsigned itemsize = random_.one_in(4) ? 1 + below(random_, 20) : sizeof(Scalar);
        if (random_.one_in(2)) pipeline_.add(chunks::shuffle_id, {&itemsize, 1});
        if (!zfp_ && random_.one_in(2)) {
            const unsigned pixels = 2 + 2 * below(random_, 16), line = pixels + below(random_, 90);
            const unsigned values[] = {random_.one_in(2) ? 169u : 141u, pixels, 8 * sizeof(Scalar), line};
            pipeline_.add(chunks::szip_id, values);
        }
        if (random_.one_in(2)) pipeline_.add(chunks::fletcher32_id, {});
        require(pipeline_.foreign() == 0, "these filters are native");
    }

    // What HDF5 would store of a chunk without zfp, and of szip's filter the bit if it makes nothing smaller.
    Bytes plain(const Origin& origin, std::uint32_t& mask) {
        Bytes bytes(pipeline_.nbytes() + szip::size_nbytes + chunks::checksum_nbytes), scratch(bytes.size());
        for_each_index(chunk_, [&](Extents at) {
            const std::size_t to = offset_of(at, pipeline_.strides(), chunk_.rank);
            for (unsigned axis = 0; axis < chunk_.rank; ++axis)
                at[axis] = std::min(at[axis] + static_cast<std::size_t>(origin[axis]), shape_.extent[axis] - 1);
            std::memcpy(&bytes[to], values_.at(at), sizeof(Scalar));
        });
        std::size_t nbytes = pipeline_.nbytes();
        if (zfp_)
            pipeline_.encode_rest(bytes.data(), nbytes, 1, scratch.data());
        else  // the first one is no zfp, which `encode_rest` passes over
            for (const chunks::Stage& stage : pipeline_.stages()) {
                if (stage.kind == chunks::Kind::szip) {
                    const std::uint8_t* const in = bytes.data();
                    std::size_t length = 0;
                    if (szip::encode(szip::portable_kernel, stage.pixels, {in, nbytes},
                                     {&scratch[szip::size_nbytes], nbytes}, length)) {
                        zfp::store_le32(scratch.data(), static_cast<std::uint32_t>(nbytes));
                        nbytes = szip::size_nbytes + length;
                        std::copy_n(scratch.data(), nbytes, bytes.data());
                    } else {
                        mask |= 1u << (&stage - pipeline_.stages().data());
                    }
                } else if (stage.kind == chunks::Kind::shuffle) {
                    filters::shuffle({bytes.data(), nbytes}, stage.itemsize, scratch.data());
                    std::copy_n(scratch.data(), nbytes, bytes.data());
                } else {
                    zfp::store_le32(&bytes[nbytes], filters::fletcher32({bytes.data(), nbytes}));
                    nbytes += chunks::checksum_nbytes;
                }
            }
        bytes.resize(nbytes);
        return bytes;
    }

    void store() {
        const Scalar low = random_.one_in(8) ? -100 : -std::numeric_limits<Scalar>::infinity();
        const std::vector<Scalar> marks(random_.below(2), mark_);
        const double bound = random_.one_in(4) ? 1e-3 : std::numeric_limits<double>::infinity();
        const bool exact = random_.one_in(8);
        const std::uint32_t mask = random_.one_in(2) ? 0 : 2;
        const std::span marked(reinterpret_cast<const std::uint8_t*>(marks.data()), marks.size() * sizeof(Scalar));
        const chunks::Loss loss{mask, marked, low, std::numeric_limits<double>::infinity(), bound, exact};
        Shape grid{chunk_.rank, {}};
        for (unsigned axis = 0; axis < chunk_.rank; ++axis)
            grid.extent[axis] = (shape_.extent[axis] - 1) / chunk_.extent[axis] + 1;
        allowed_.resize(shape_.count());
        for_each_index(grid, [&](const Extents& at) {
            Origin origin;
            for (unsigned axis = 0; axis < chunk_.rank; ++axis)
                origin.push_back(static_cast<std::int64_t>(at[axis] * chunk_.extent[axis]));
            Bytes stored;
            chunks::Encoded encoded;
            if (zfp_ && pipeline_.encodes(mask))
                encoded = chunks::Writer<Scalar>(pipeline_, kernel(), loss)
                              .encode(values_.place<const std::uint8_t>(), origin, stored);
            require(encoded.kept || stored.empty(), "a chunk that is refused has no bytes");
            require(encoded.error <= bound && (!exact || encoded.error == 0), "the bound is kept");
            if (!zfp_ && pipeline_.encodes_bytes())
                encoded = chunks::LosslessWriter(pipeline_, kernel())
                              .encode(values_.place<const std::uint8_t>(), origin, stored);
            std::uint32_t left_out = zfp_;
            if (!encoded.kept) stored = plain(origin, left_out);
            put(origin, stored, !encoded.kept ? left_out : zfp_ ? mask : 0);
            allow(origin, encoded.error);
        });
    }

    void put(const Origin& origin, const Bytes& stored, std::uint32_t mask) {
        bytes_.resize(bytes_.size() + random_.below(5));
        origins_.insert(origins_.end(), origin.begin(), origin.end());
        offsets_.push_back(static_cast<std::int64_t>(bytes_.size()));
        nbytes_.push_back(static_cast<std::int64_t>(stored.size()));
        masks_.push_back(mask);
        bytes_.insert(bytes_.end(), stored.begin(), stored.end());
    }

    void allow(const Origin& origin, double error) {
        for_each_index(chunk_, [&](Extents at) {
            for (unsigned axis = 0; axis < chunk_.rank; ++axis) {
                at[axis] += static_cast<std::size_t>(origin[axis]);
                if (at[axis] >= shape_.extent[axis]) return;
            }
            allowed_[offset_of(at, shape_.contiguous(1), shape_.rank)] = error;
        });
    }

    void damage_table() {
        constexpr std::int64_t edges[] = {0,         1,        -1, 4096, std::int64_t{1} << 40, std::int64_t{1} << 62,
                                          INT64_MAX, INT64_MIN};
        for (std::size_t times = random_.below(4); times > 0; --times) {
            std::vector<std::int64_t>& column = random_.one_in(3) ? origins_ : random_.one_in(2) ? offsets_ : nbytes_;
            std::int64_t& number = column[random_.below(column.size())];
            if (random_.one_in(2))
                number = edges[random_.below(std::size(edges))];
            else
                number ^= random_.between(0, 3);
        }
        if (random_.one_in(4)) masks_[random_.below(masks_.size())] = random_.word();
    }

    static constexpr Scalar mark_ = -999;

    Random& random_;
    Shape chunk_, shape_;
    chunks::Pipeline pipeline_;
    Lying values_;
    bool zfp_ = false;
    Bytes bytes_;
    std::vector<std::int64_t> origins_, offsets_, nbytes_;
    std::vector<std::uint32_t> masks_;
    std::vector<double> allowed_;  // error of each value
    system::ScratchFile file_;
};

template <class Scalar>
bool there_and_back(Random& random) {
    Dataset<Scalar> dataset(random);
    dataset.check();
    return dataset.check_damaged();
}

}  // namespace

int main(int count, char** arguments) {
    name_place_at_death();
    const auto [mutations, seed, first] = fuzz_arguments(count, arguments);
    std::uint64_t read = 0;
    for (std::uint64_t i = first; i < first + mutations; ++i) {
        Random random(seed, i);
        place = {"chunks", i};
        read += random.one_in(2) ? there_and_back<float>(random) : there_and_back<double>(random);
        FakeDataset(random).check();
    }
    std::printf("%llu of %llu damaged datasets read all the same\n", static_cast<unsigned long long>(read),
                static_cast<unsigned long long>(mutations));
    std::printf("%llu mutations of seed %llu: nothing found\n", static_cast<unsigned long long>(mutations),
                static_cast<unsigned long long>(seed));
}
