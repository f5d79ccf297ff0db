// The mean similarity of two fields in windows of 11 x 11 values with Gaussian weights: what takes long in DSSIM.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tamis::values {

// Windows of two fields of doubles, which have `columns` values in a row. Missing values are 0 in both, and have no
// weight.
class Windows {
public:
    static constexpr std::size_t reach = 5, width = 2 * reach + 1;

    Windows(const double* first, const double* second, const bool* present, std::size_t rows, std::size_t columns)
        : first_(first), second_(second), present_(present), rows_(rows), columns_(columns) {
        double total = 0;
        for (std::size_t i = 0; i < width; ++i) {
            const double step = (static_cast<double>(i) - static_cast<double>(reach)) / sigma;
            total += weights_[i] = std::exp(-0.5 * step * step);
        }
        for (double& weight : weights_) weight /= total;
    }

    // The mean over all whole windows around a value that is there; NaN without any.
    double mean_similarity() {
        double sum = 0;
        std::size_t count = 0;
        if (rows_ < width || columns_ < width) return std::nan("");
        for (auto* each : {&down_, &across_})
            for (auto& row : *each) row.resize(columns_);
        for (std::size_t row = 0; row + width <= rows_; ++row) {
            add_down(row);
            add_across();
            const bool* const present = present_ == nullptr ? nullptr : present_ + (row + reach) * columns_ + reach;
            for (std::size_t column = 0; column + width <= columns_; ++column) {
                if (present != nullptr && !present[column]) continue;
                sum += similarity(column);
                ++count;
            }
        }
        return count == 0 ? std::nan("") : sum / static_cast<double>(count);
    }

private:
    static constexpr double sigma = 1.5, stable = 1e-8;
    static constexpr std::size_t sums = 6;  // of both, of both squared, of their product, and of the weights
    using Rows = std::array<std::vector<double>, sums>;

    void add_down(std::size_t top) {
        for (auto& row : down_) std::fill(row.begin(), row.end(), 0.0);
        for (std::size_t i = 0; i < width; ++i) {
            const double* const one = first_ + (top + i) * columns_;
            const double* const two = second_ + (top + i) * columns_;
            const double weight = weights_[i];
            for (std::size_t column = 0; column < columns_; ++column) {
                const double a = weight * one[column], b = weight * two[column];
                down_[0][column] += a;
                down_[1][column] += b;
                down_[2][column] += a * one[column];
                down_[3][column] += b * two[column];
                down_[4][column] += a * two[column];
            }
            if (present_ == nullptr) continue;
            const bool* const there = present_ + (top + i) * columns_;
            for (std::size_t column = 0; column < columns_; ++column) down_[5][column] += there[column] ? weight : 0.0;
        }
    }

    void add_across() {
        const std::size_t windows = columns_ - width + 1;
        for (std::size_t which = 0; which < (present_ == nullptr ? sums - 1 : sums); ++which) {
            double* const out = across_[which].data();
            const double* const in = down_[which].data();
            std::fill(out, out + windows, 0.0);
            for (std::size_t i = 0; i < width; ++i)
                for (std::size_t column = 0; column < windows; ++column) out[column] += weights_[i] * in[column + i];
        }
    }

    double similarity(std::size_t column) const {
        const double weight = present_ == nullptr ? 1.0 : across_[5][column];
        const auto mean = [&](std::size_t which) { return across_[which][column] / weight; };
        const double one = mean(0), two = mean(1);
        const double variances = mean(2) - one * one + mean(3) - two * two, covariance = mean(4) - one * two;
        const double luminance = (2 * one * two + stable) / (one * one + two * two + stable);
        return luminance * ((2 * covariance + stable) / (variances + stable));
    }

    const double* first_;
    const double* second_;
    const bool* present_;
    std::size_t rows_, columns_;
    std::array<double, width> weights_{};
    Rows down_, across_;
};

}  // namespace tamis::values
