// The properties interface: the request stands in a property of the list, and the filter has no cd_values.

#include "H5Zzfp_props.h"

#include <array>
#include <optional>

#include "capi/linked.hpp"
#include "hdf5/controls.hpp"

namespace tamis::hdf5 {

namespace {

using Words = std::array<unsigned, max_requested>;

constexpr hid_t default_stack = 0;  // H5E_DEFAULT

// As a failing call of HDF5 ends: the reason is on the error stack, and the function that H5Eset_auto2 has set gets it.
// By default that function prints the stack.
herr_t refuse_call(const char* function, const char* minor, const Message& message) {
    unsigned is_v2 = 0;
    herr_t (*report)(hid_t stack, void* data) = nullptr;
    void* data = nullptr;
    // First, because these two clear the stack. H5Eset_auto1 may be absent from HDF5, and so may its function.
    if (H5Eauto_is_v2(default_stack, &is_v2) >= 0 && is_v2 != 0) H5Eget_auto2(default_stack, &report, &data);
    refuse(Hdf5(nullptr), function, minor, message);
    if (report != nullptr) report(default_stack, data);
    return -1;
}

bool is_creation_list(hid_t plist) { return H5open() >= 0 && H5Pisa_class(plist, H5P_CLS_DATASET_CREATE_ID_g) > 0; }

herr_t refuse_list(const char* function) {
    return refuse_call(function, "H5E_BADTYPE_g",
                       Message::format("zfp: not a dataset creation property list class: expected a list of "
                                       "H5Pcreate(H5P_DATASET_CREATE)"));
}

bool has_filter(const Hdf5& hdf5, hid_t plist) {
    const int filters = hdf5.filter_count(plist);
    for (unsigned i = 0; static_cast<int>(i) < filters; ++i) {
        unsigned flags = 0, config = 0;
        std::size_t count = 0;
        if (hdf5.filter_at(plist, i, &flags, &count, nullptr, 0, nullptr, &config) == filter_id) return true;
    }
    return false;
}

// What cannot be right for any type and chunk; set_local sees the rest.
Message why_refused(const Words& words) {
    const double number = detail::double_at(words, 2);
    const int minexp = static_cast<int>(words[5]);
    Params params;
    switch (words[0]) {
        case H5Z_ZFP_MODE_RATE:
            if (number >= zfp::least_rate && number <= zfp::most_rate) return {};
            return Message::format("zfp: rate out of range: expected %.3g to %g bits per value, got %g",
                                   zfp::least_rate, zfp::most_rate, number);
        case H5Z_ZFP_MODE_PRECISION:
            if (zfp::set_precision(params, words[2])) return {};
            return Message::format("zfp: precision out of range: expected 1 to %u bit planes, got %u%s", zfp::max_prec,
                                   words[2], words[2] == 0 ? "; reversible mode keeps every bit" : "");
        case H5Z_ZFP_MODE_ACCURACY:
            if (zfp::set_accuracy(params, number)) return {};
            return Message::format("zfp: accuracy out of range: expected a finite number of 0 or more, got %g", number);
        case H5Z_ZFP_MODE_EXPERT:
            if (zfp::set_expert(params, words[2], words[3], words[4], minexp)) return {};
            return Message::format("%s, got minbits %u, maxbits %u, maxprec %u, minexp %d",
                                   describe({Code::bad_expert}, Type::float64).text, words[2], words[3], words[4],
                                   minexp);
        default:
            return {};
    }
}

herr_t set(const char* function, hid_t plist, const Words& words) {
    if (!is_creation_list(plist)) return refuse_list(function);
    if (const Message why = why_refused(words); !why.empty()) return refuse_call(function, "H5E_BADVALUE_g", why);
    const Hdf5 hdf5(nullptr);
    while (has_filter(hdf5, plist))  // HDF5 removes one at a time
        if (hdf5.remove_filter(plist, filter_id) < 0)
            return refuse_call(function, "H5E_CANTINIT_g",
                               Message::format("zfp: Unable to remove old ZFP filter from pipeline."));
    if (hdf5.set_filter(plist, filter_id, 0, 0, nullptr) < 0)
        return refuse_call(function, "H5E_CANTINIT_g", Message::format("zfp: Unable to put ZFP filter in pipeline."));
    Controls controls{words[0], 0, {words[2], words[3], words[4], words[5]}};
    return hdf5.has_property(plist, controls_property) > 0
               ? H5Pset(plist, controls_property, &controls)
               : H5Pinsert2(plist, controls_property, sizeof controls, &controls, nullptr, nullptr, nullptr, nullptr,
                            nullptr, nullptr);
}

// HDF5's own getters take NULL for what the caller does not want.
template <class T>
void give(T* place, T value) {
    if (place != nullptr) *place = value;
}

// As libzfp classifies them.
unsigned mode_of(const Params& params) {
    const Params all;
    const bool any_size = params.minbits <= all.minbits && params.maxbits >= all.maxbits;
    const bool all_planes = params.maxprec >= all.maxprec;
    if (any_size && all_planes && params.reversible()) return H5Z_ZFP_MODE_REVERSIBLE;
    if (params == all) return H5Z_ZFP_MODE_EXPERT;
    if (params.minbits == params.maxbits && all_planes && params.minexp == all.minexp) return H5Z_ZFP_MODE_RATE;
    if (any_size && params.minexp == all.minexp) return H5Z_ZFP_MODE_PRECISION;
    if (any_size && all_planes) return H5Z_ZFP_MODE_ACCURACY;
    return H5Z_ZFP_MODE_EXPERT;
}

// What a property list says. Requests keep their numbers; the parameters of a rate depend on a dataset, which is not
// there yet.
struct Setting {
    unsigned mode = 0;
    std::optional<Params> params;
    double rate = 0, accuracy = 0;
    unsigned precision = 0;
};

void setting_of_stored(const Header& header, Setting& setting) {
    setting.params = header.params;
    setting.mode = mode_of(header.params);
    setting.rate = header.params.maxbits / static_cast<double>(zfp::block_size(header.layout.rank));
    setting.precision = header.params.maxprec;
    setting.accuracy = std::ldexp(1.0, header.params.minexp);
}

Status setting_of_request(CdValues words, Setting& setting) {
    Params params;
    const Status status = params_of_request(words, Type::float64, 1, params);
    if (!status) return status;
    setting.mode = words.empty() ? H5Z_ZFP_MODE_EXPERT : words[0];
    if (setting.mode != H5Z_ZFP_MODE_RATE) setting.params = params;
    if (words.size() >= 4) setting.rate = setting.accuracy = detail::double_at(words, 2);
    if (words.size() >= 3) setting.precision = words[2];
    return {};
}

// False, after HDF5 was told, where the list cannot be read. Mode 0: it has no filter 32013.
bool read(const char* function, hid_t plist, Setting& setting) {
    if (!is_creation_list(plist)) return refuse_list(function) >= 0;
    const Hdf5 hdf5(nullptr);
    if (!has_filter(hdf5, plist)) return true;
    constexpr std::size_t most = max_requested;
    unsigned values[most] = {}, flags = 0, config = 0;
    std::size_t count = most;
    if (hdf5.filter_by_id(plist, filter_id, &flags, &count, values, 0, nullptr, &config) < 0)
        return refuse_call(function, "H5E_CANTGET_g", Message::format("zfp: cannot read the filter's parameters")) >= 0;
    if (count == 0) request_of_controls(hdf5, plist, values, count);
    const CdValues words{values, std::min(count, most)};
    Stored stored;
    Status status;
    if (!is_stored(words))
        status = setting_of_request(words, setting);
    else if (status = parse_stored(words, stored); status)
        setting_of_stored(stored.header, setting);
    return status || refuse_call(function, "H5E_BADVALUE_g", describe(status, Type::float64)) >= 0;
}

const char* mode_name(unsigned mode) {
    constexpr const char* names[] = {"no zfp filter", "rate", "precision", "accuracy", "expert", "reversible"};
    return names[mode];
}

// False, after HDF5 was told, where the list has another mode.
bool read_mode(const char* function, hid_t plist, unsigned mode, Setting& setting) {
    if (!read(function, plist, setting)) return false;
    return setting.mode == mode || refuse_call(function, "H5E_BADVALUE_g",
                                               Message::format("zfp: expected a property list of mode %s, got %s",
                                                               mode_name(mode), mode_name(setting.mode))) >= 0;
}

Words words_of_double(unsigned mode, double number) {
    Words words{mode};
    std::memcpy(&words[2], &number, sizeof number);
    return words;
}

}  // namespace

}  // namespace tamis::hdf5

#pragma GCC visibility push(default)

extern "C" {

herr_t H5Pset_zfp_rate(hid_t plist, double rate) {
    return tamis::hdf5::set(__func__, plist, tamis::hdf5::words_of_double(H5Z_ZFP_MODE_RATE, rate));
}

herr_t H5Pset_zfp_precision(hid_t plist, unsigned prec) {
    return tamis::hdf5::set(__func__, plist, {H5Z_ZFP_MODE_PRECISION, 0, prec});
}

herr_t H5Pset_zfp_accuracy(hid_t plist, double acc) {
    return tamis::hdf5::set(__func__, plist, tamis::hdf5::words_of_double(H5Z_ZFP_MODE_ACCURACY, acc));
}

herr_t H5Pset_zfp_expert(hid_t plist, unsigned minbits, unsigned maxbits, unsigned maxprec, int minexp) {
    return tamis::hdf5::set(__func__, plist,
                            {H5Z_ZFP_MODE_EXPERT, 0, minbits, maxbits, maxprec, static_cast<unsigned>(minexp)});
}

herr_t H5Pset_zfp_reversible(hid_t plist) { return tamis::hdf5::set(__func__, plist, {H5Z_ZFP_MODE_REVERSIBLE}); }

int H5Pget_zfp_mode(hid_t plist) {
    tamis::hdf5::Setting setting;
    return tamis::hdf5::read(__func__, plist, setting) ? static_cast<int>(setting.mode) : -1;
}

herr_t H5Pget_zfp_rate(hid_t plist, double* rate) {
    tamis::hdf5::Setting setting;
    if (!tamis::hdf5::read_mode(__func__, plist, H5Z_ZFP_MODE_RATE, setting)) return -1;
    tamis::hdf5::give(rate, setting.rate);
    return 0;
}

herr_t H5Pget_zfp_precision(hid_t plist, unsigned* prec) {
    tamis::hdf5::Setting setting;
    if (!tamis::hdf5::read_mode(__func__, plist, H5Z_ZFP_MODE_PRECISION, setting)) return -1;
    tamis::hdf5::give(prec, setting.precision);
    return 0;
}

herr_t H5Pget_zfp_accuracy(hid_t plist, double* acc) {
    tamis::hdf5::Setting setting;
    if (!tamis::hdf5::read_mode(__func__, plist, H5Z_ZFP_MODE_ACCURACY, setting)) return -1;
    tamis::hdf5::give(acc, setting.accuracy);
    return 0;
}

herr_t H5Pget_zfp_expert(hid_t plist, unsigned* minbits, unsigned* maxbits, unsigned* maxprec, int* minexp) {
    tamis::hdf5::Setting setting;
    if (!tamis::hdf5::read(__func__, plist, setting)) return -1;
    if (!setting.params)
        return tamis::hdf5::refuse_call(
            __func__, "H5E_BADVALUE_g",
            tamis::hdf5::Message::format("zfp: expected a property list with numbers of bits, got %s; the bits of a "
                                         "rate are known when the dataset is created",
                                         tamis::hdf5::mode_name(setting.mode)));
    tamis::hdf5::give(minbits, setting.params->minbits);
    tamis::hdf5::give(maxbits, setting.params->maxbits);
    tamis::hdf5::give(maxprec, setting.params->maxprec);
    tamis::hdf5::give(minexp, setting.params->minexp);
    return 0;
}
}

#pragma GCC visibility pop
