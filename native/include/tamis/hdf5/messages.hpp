// What a Status means to somebody who reads HDF5's error stack: what was expected, what was found, what to change.
#pragma once

#include <cstdio>

#include "tamis/hdf5/cd_values.hpp"
#include "tamis/zfp/proof.hpp"

namespace tamis::hdf5 {

struct Message {
    char text[400] = "";

    bool empty() const { return text[0] == '\0'; }

    template <class... Arguments>
    static Message format(const char* pattern, Arguments... arguments) {
        Message message;
        std::snprintf(message.text, sizeof message.text, pattern, arguments...);
        return message;
    }
};

inline const char* type_name(Type type) {
    switch (type) {
        case Type::int32:
            return "int32";
        case Type::int64:
            return "int64";
        case Type::float32:
            return "float32";
        default:
            return "float64";
    }
}

inline Message describe(const Status& status, Type type) {
    const auto where = static_cast<unsigned long long>(status.where);
    switch (status.code) {
        case Code::non_finite:
            return Message::format(
                "zfp: NaN or infinity at value %llu of the chunk: lossy modes take finite values only; use reversible "
                "mode, or an optional filter, which leaves such a chunk unfiltered; a chunk that is not full also "
                "holds "
                "the fill value",
                where);
        case Code::integer_range:
            return Message::format(
                "zfp: integer out of range at value %llu of the chunk: lossy modes take magnitudes below 2^%d; use "
                "reversible mode, or an optional filter, which leaves such a chunk unfiltered",
                where, type == Type::int32 ? 30 : 62);
        case Code::changed:
            return Message::format("zfp: values of the chunk were changed while they were encoded");
        case Code::truncated:
            return Message::format("zfp: chunk is truncated or damaged: its data end inside block %llu", where);
        case Code::not_a_header:
            return Message::format(
                "zfp: stored parameters hold no ZFP header: the file is damaged, or it was written "
                "with the filter not applied");
        case Code::codec_version:
            return Message::format("zfp: written by ZFP codec %llu, this filter reads codec %u", where,
                                   zfp::codec_version);
        case Code::bad_rate:
            return Message::format("zfp: expected a finite rate above 0 that gives 1 to %u bits per block",
                                   zfp::header_max_bits);
        case Code::bad_precision:
            return Message::format("zfp: expected a precision of 1 to %u bit planes", zfp::max_prec);
        case Code::bad_accuracy:
            return Message::format("zfp: expected a finite accuracy of 0 or more");
        case Code::bad_expert:
            return Message::format(
                "zfp: expected minbits <= maxbits, minbits <= %u, maxbits >= 1 and maxprec 1 to %u in expert mode",
                zfp::header_max_bits, zfp::max_prec);
        case Code::bad_mode:
            return Message::format(
                "zfp: expected mode 1 (rate), 2 (precision), 3 (accuracy), 4 (expert) or 5 "
                "(reversible) as the first parameter, got %llu",
                where);
        case Code::too_few_values:
            return Message::format("zfp: this mode takes %llu cd_values, got fewer", where);
        case Code::maxbits_small:
            return Message::format("zfp: expected maxbits of at least %llu, which the header of a %s block takes",
                                   where, type_name(type));
        case Code::extent_large:
            return Message::format(
                "zfp: a chunk axis (number %llu from the fastest, unit axes not counted) is too long "
                "for the ZFP header: use at most 2^48, 2^24, 65536 or 4096 for 1, 2, 3 or 4 axes",
                where);
        case Code::integer_accuracy:
            return Message::format("zfp: accuracy below 1 does not make integers exact; use reversible mode");
        case Code::no_memory:
            return Message::format("zfp: no memory for %llu bytes", where);
        case Code::no_room:
            return Message::format(
                "zfp: these parameters take the long ZFP header, which leaves no room to note the fill value, or that "
                "nothing is to be proven; use accuracy mode, or a fill value far beyond the data");
        case Code::ok:
        case Code::beyond_tolerance:
        case Code::fill_value:
            break;  // what a Verdict says
    }
    return Message::format("zfp: failed");
}

// What a proof found.
inline Message describe(const zfp::Verdict& verdict, const Header& header) {
    const Status& status = verdict.status;
    if (status.code != Code::beyond_tolerance && status.code != Code::fill_value) return describe(status, header.type);
    const int digits = header.type == Type::float32 ? 9 : 17;
    const Message change = Message::format("%.*g at value %llu of the chunk would be read as %.*g", digits, verdict.was,
                                           static_cast<unsigned long long>(status.where), digits, verdict.now);
    const char* instead =
        "use reversible mode, or an optional filter, which leaves such a chunk unfiltered; a chunk that is not full "
        "also "
        "holds the fill value: write whole chunks";
    if (status.code == Code::fill_value)
        return Message::format("zfp: %s, and one of them is the fill value, which stands for missing values; %s",
                               change.text, instead);
    return Message::format("zfp: %s, an error of %g, but the tolerance is %g; %s", change.text,
                           std::abs(verdict.was - verdict.now), std::ldexp(1.0, header.params.minexp), instead);
}

}  // namespace tamis::hdf5
