// What a Status means to somebody who reads HDF5's error stack: what was expected, what was found, what to change.
#pragma once

#include <cstdio>

#include "cd_values.hpp"

namespace tamis::plugin {

struct Message {
    char text[400] = "";

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
                "mode, or an optional filter, which leaves such a chunk unfiltered",
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
        case Code::bad_accuracy:
            return Message::format("zfp: expected a finite accuracy of 0 or more");
        case Code::bad_expert:
            return Message::format("zfp: expected minbits <= maxbits, minbits <= %u and maxprec 1 to 64 in expert mode",
                                   zfp::header_max_bits);
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
        default:
            return Message::format("zfp: failed");
    }
}

}  // namespace tamis::plugin
