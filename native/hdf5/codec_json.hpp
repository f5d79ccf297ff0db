// The JSON of NCZarr's codec, and the parameters of the filter. docs/format.md has the keys.
#pragma once

#include <string_view>

#include "tamis/hdf5/messages.hpp"

namespace tamis::hdf5 {

// Chunks of filter 32013, which have no header. Not "zfpy", numcodecs' codec, whose chunks have one.
inline constexpr const char* codec_id = "h5z_zfp";

// Behind stored parameters that came from JSON: they are to be those of the array, or the metadata are damaged.
inline constexpr unsigned from_json_word = 0x6e6f736a;

// Parameters of the filter, and up to three words behind them that no file has.
struct Words {
    unsigned values[max_stored + 3] = {};
    std::size_t count = 0;

    CdValues span() const { return {values, count}; }
};

// Set the parameters: of the requested form, or, where the JSON names a chunk, of the stored form with from_json_word
// behind it. The message says what is wrong; it is empty where nothing is.
Message words_of_json(std::string_view json, Words& words);

// Longest JSON of any parameters: 11 numbers, and less than 200 characters of words.
struct Json {
    char text[512] = "";
};

// Set the JSON of parameters of either form. The message says what is wrong with them.
Message json_of_words(CdValues words, Json& json);

}  // namespace tamis::hdf5
