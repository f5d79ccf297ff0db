#include "hdf5/codec_json.hpp"

#include "hdf5/chunk.hpp"
#include "hdf5/json.hpp"

namespace tamis::hdf5 {

namespace {

// As the ZFP header numbers them; the mode's own names are those of the codec "zfp" that is registered for Zarr 3.
constexpr const char* type_names[] = {"int32", "int64", "float32", "float64"};

struct Fields {
    std::string_view id, mode, dtype;
    double rate = 0, tolerance = 0;
    unsigned precision = 0, minbits = 0, maxbits = 0, maxprec = 0;
    int minexp = 0;
    unsigned long long shape[zfp::max_rank] = {};
    std::size_t axes = 0;
};

enum Key : unsigned {
    key_id = 1,
    key_mode = 2,
    key_dtype = 4,
    key_shape = 8,
    key_rate = 16,
    key_precision = 32,
    key_tolerance = 64,
    key_minbits = 128,
    key_maxbits = 256,
    key_maxprec = 512,
    key_minexp = 1024
};

struct Mode {
    const char* name;
    unsigned keys;  // that it has to have, and no others
    const char* text;
};

// By the number of the mode, which begin at 1.
constexpr Mode modes[] = {
    {"fixed_rate", key_rate, "rate"},
    {"fixed_precision", key_precision, "precision"},
    {"fixed_accuracy", key_tolerance, "tolerance"},
    {"expert", key_minbits | key_maxbits | key_maxprec | key_minexp, "minbits, maxbits, maxprec, minexp"},
    {"reversible", 0, "no other key"},
};

bool read_shape(JsonReader& reader, Fields& fields) {
    if (!reader.take('[')) return false;
    do {
        if (fields.axes == zfp::max_rank || !reader.read(fields.shape[fields.axes])) return false;
        ++fields.axes;
    } while (reader.take(','));
    return reader.take(']');
}

// The bit of a key whose value was read; 0 where there is no such key, or no such value.
unsigned read_value(JsonReader& reader, std::string_view key, Fields& fields) {
    const auto value = [&](auto& field, unsigned bit) { return reader.read(field) ? bit : 0; };
    if (key == "id") return value(fields.id, key_id);
    if (key == "mode") return value(fields.mode, key_mode);
    if (key == "dtype") return value(fields.dtype, key_dtype);
    if (key == "shape") return read_shape(reader, fields) ? unsigned{key_shape} : 0;
    if (key == "rate") return value(fields.rate, key_rate);
    if (key == "precision") return value(fields.precision, key_precision);
    if (key == "tolerance") return value(fields.tolerance, key_tolerance);
    if (key == "minbits") return value(fields.minbits, key_minbits);
    if (key == "maxbits") return value(fields.maxbits, key_maxbits);
    if (key == "maxprec") return value(fields.maxprec, key_maxprec);
    if (key == "minexp") return value(fields.minexp, key_minexp);
    return 0;
}

Message read_fields(std::string_view json, Fields& fields, unsigned& keys) {
    JsonReader reader(json);
    const auto wrong = [&](const char* expected) {
        return Message::format("zfp: expected %s at character %zu of the JSON of codec %s", expected,
                               reader.position() + 1, codec_id);
    };
    if (!reader.take('{')) return wrong("an object");
    do {
        std::string_view key;
        if (!reader.read(key) || !reader.take(':')) return wrong("a key and a colon");
        const unsigned bit = read_value(reader, key, fields);
        if (bit == 0) return wrong("a key of the codec, with a value of its kind,");
        if ((keys & bit) != 0) return wrong("each key once, got a second one");
        keys |= bit;
    } while (reader.take(','));
    if (!reader.take('}') || !reader.at_end()) return wrong("the end of the object");
    return {};
}

// In the requested form.
Words request_of(unsigned mode, const Fields& fields) {
    Words words{{mode}, 1};
    const auto add_double = [&](double number) {
        std::memcpy(words.values + 2, &number, sizeof number);
        words.count = 4;
    };
    switch (mode) {
        case 1:
            add_double(fields.rate);
            break;
        case 2:
            words = {{mode, 0, fields.precision}, 3};
            break;
        case 3:
            add_double(fields.tolerance);
            break;
        case 4:
            words = {{mode, 0, fields.minbits, fields.maxbits, fields.maxprec, static_cast<unsigned>(fields.minexp)},
                     6};
            break;
        default:
            break;
    }
    return words;
}

Message add_chunk(const Fields& fields, Words& words) {
    const auto* name = std::find(std::begin(type_names), std::end(type_names), fields.dtype);
    if (name == std::end(type_names))
        return Message::format("zfp: expected int32, int64, float32 or float64 as dtype of codec %s", codec_id);
    Chunk chunk{static_cast<Type>(1 + (name - type_names)), false, {}};
    if (Message why = layout_of_chunk({fields.shape, fields.axes}, chunk.layout); !why.empty()) return why;
    Params params;
    unsigned stored[max_stored];
    if (Message why = stored_of_request(words.span(), chunk, params, stored, words.count); !why.empty()) return why;
    std::copy_n(stored, words.count, words.values);
    words.values[words.count++] = from_json_word;
    return {};
}

// A text of limited length, ended by NUL.
class Writer {
public:
    explicit Writer(std::span<char> out) : out_(out) {}

    Writer& operator<<(std::string_view text) {
        const std::size_t fits = std::min(text.size(), out_.size() - 1 - at_);
        std::copy_n(text.data(), fits, out_.data() + at_);
        at_ += fits;
        out_[at_] = '\0';
        return *this;
    }

    // The shortest text that is read as the same number.
    template <class Number>
        requires std::is_arithmetic_v<Number>
    Writer& operator<<(Number number) {
        char digits[32];
        const auto [end, error] = std::to_chars(digits, digits + sizeof digits, number);
        return *this << std::string_view(digits, static_cast<std::size_t>(end - digits));
    }

private:
    std::span<char> out_;
    std::size_t at_ = 0;
};

void write_mode(Writer& writer, unsigned mode, CdValues words) {
    writer << "{\"id\": \"" << codec_id << "\", \"mode\": \"" << modes[mode - 1].name << "\"";
    if (mode == 1) writer << ", \"rate\": " << detail::double_at(words, 2);
    if (mode == 2) writer << ", \"precision\": " << words[2];
    if (mode == 3) writer << ", \"tolerance\": " << detail::double_at(words, 2);
    if (mode == 4)
        writer << ", \"minbits\": " << words[2] << ", \"maxbits\": " << words[3] << ", \"maxprec\": " << words[4]
               << ", \"minexp\": " << static_cast<int>(words[5]);
}

// The mode that a header names, in the requested form. Sizes that limit no block are the codec's own.
Words request_of(const Header& header) {
    Params p = header.params;
    const bool any_size = p.minbits <= zfp::min_bits && p.maxbits >= zfp::max_bits;
    const bool all_planes = p.maxprec == zfp::max_prec;
    if (any_size) p = {zfp::min_bits, zfp::max_bits, p.maxprec, p.minexp};
    Fields fields;
    fields.minbits = p.minbits;
    fields.maxbits = p.maxbits;
    fields.maxprec = fields.precision = p.maxprec;
    fields.minexp = p.minexp;
    fields.rate = p.maxbits / static_cast<double>(zfp::block_size(header.layout.rank));
    fields.tolerance = std::ldexp(1.0, p.minexp);
    if (p.minbits == p.maxbits && all_planes && p.minexp == zfp::min_exp) return request_of(1, fields);
    if (any_size && all_planes && p.reversible()) return request_of(5, fields);
    if (any_size && !all_planes && p.minexp == zfp::min_exp) return request_of(2, fields);
    if (any_size && all_planes && p.minexp > zfp::min_exp && std::isfinite(fields.tolerance))
        return request_of(3, fields);
    return request_of(4, fields);
}

}  // namespace

Message words_of_json(std::string_view json, Words& words) {
    Fields fields;
    unsigned keys = 0;
    if (Message why = read_fields(json, fields, keys); !why.empty()) return why;
    if (fields.id != codec_id)
        return Message::format("zfp: expected \"id\": \"%s\" in the JSON of the codec", codec_id);
    const Mode* mode = std::find_if(std::begin(modes), std::end(modes), [&](auto& m) { return fields.mode == m.name; });
    if (mode == std::end(modes))
        return Message::format(
            "zfp: expected fixed_rate, fixed_precision, fixed_accuracy, expert or reversible as mode of codec %s",
            codec_id);
    const unsigned of_mode = keys & ~(key_id | key_mode | key_dtype | key_shape),
                   chunk = keys & (key_dtype | key_shape);
    if (of_mode != mode->keys)
        return Message::format("zfp: expected %s in mode %s of codec %s", mode->text, mode->name, codec_id);
    if (chunk != 0 && chunk != (key_dtype | key_shape))
        return Message::format("zfp: expected both dtype and shape in the JSON of codec %s, or neither", codec_id);
    words = request_of(static_cast<unsigned>(mode - modes) + 1, fields);
    return chunk != 0 ? add_chunk(fields, words) : Message{};
}

Message json_of_words(CdValues words, Json& json) {
    Writer writer(json.text);
    if (is_stored(words)) {
        Stored stored;
        if (const Status status = parse_stored(words, stored); !status) return describe(status, stored.header.type);
        const Words request = request_of(stored.header);
        write_mode(writer, request.values[0], request.span());
        const Layout& layout = stored.header.layout;
        writer << ", \"dtype\": \"" << type_names[static_cast<unsigned>(stored.header.type) - 1] << "\", \"shape\": [";
        for (unsigned axis = layout.rank; axis-- > 0;) writer << layout.extent[axis] << (axis > 0 ? ", " : "]");
    } else {
        // Floats with one axis take each rate that some type and rank takes.
        Params params;
        if (const Status status = params_of_request(words, Type::float32, 1, params); !status)
            return describe(status, Type::float32);
        const Words none{{4, 0, params.minbits, params.maxbits, params.maxprec, static_cast<unsigned>(params.minexp)},
                         6};
        const CdValues known = words.empty() ? none.span() : words;
        write_mode(writer, known[0], known);
    }
    writer << "}";
    return {};
}

}  // namespace tamis::hdf5
