// DSSIM: two fields scaled to 256 levels, and their mean similarity in windows of 11 x 11 values with Gaussian weights.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace tamis::values {

// Both fields scaled together to 0 ... 1 and rounded to 256 levels; 0 for missing values. They are computed as they are
// asked for: those of a field of ERA5 would take 17 MB.
template <class T>
class Levels {
public:
    Levels(const T* first, const T* second, const bool* present, std::size_t count)
        : fields_{first, second}, present_(present) {
        double low = std::numeric_limits<double>::infinity(), high = -low;
        for (const T* const field : fields_)
            for (std::size_t i = 0; i < count; ++i) {
                const double value = field[i];
                low = is_there(i) && value < low ? value : low;
                high = is_there(i) && value > high ? value : high;
            }
        const bool varies = high > low;
        base_ = varies ? low : 0;
        span_ = varies ? high - low : high != 0 ? high : 1;
    }

    // Writes the levels of `out.size()` values of the first or the second field, from `begin` on.
    void copy(std::size_t which, std::size_t begin, std::span<double> out) const {
        // Adding it rounds to a whole number, a tie to the even one: doubles of its size have no fractions.
        constexpr double most = 255, rounder = 6755399441055744.0;
        const T* const field = fields_[which] + begin;
        for (std::size_t i = 0; i < out.size(); ++i) {
            const double level = ((static_cast<double>(field[i]) - base_) / span_ * most + rounder) - rounder;
            out[i] = is_there(begin + i) ? level / most : 0.0;
        }
    }

private:
    bool is_there(std::size_t i) const { return present_ == nullptr || present_[i]; }

    std::array<const T*, 2> fields_;
    const bool* present_;
    double base_, span_;
};

// Windows of the levels of two fields, which have `columns` values in a row. Missing values have no weight.
template <class T>
class Windows {
public:
    static constexpr std::size_t reach = 5, width = 2 * reach + 1;

    Windows(const T* first, const T* second, const bool* present, std::size_t rows, std::size_t columns)
        : levels_(first, second, present, rows * columns), present_(present), rows_(rows), columns_(columns) {
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
        similarities_.resize(columns_);
        for (auto& row : products_) row.resize(columns_);
        for (auto& row : means_) row.resize(columns_);
        for (auto& slot : across_)
            for (auto& row : slot) row.resize(columns_);
        for (std::size_t row = 0; row < rows_; ++row) {
            add_across(row);
            if (row + 1 < width) continue;
            const std::size_t top = row + 1 - width;
            add_down(top);
            compare();
            const bool* const present = present_ == nullptr ? nullptr : present_ + (top + reach) * columns_ + reach;
            for (std::size_t column = 0; column + width <= columns_; ++column) {
                if (present != nullptr && !present[column]) continue;
                sum += similarities_[column];
                ++count;
            }
        }
        return count == 0 ? std::nan("") : sum / static_cast<double>(count);
    }

private:
    static constexpr double sigma = 1.5, stable = 1e-8;
    static constexpr std::size_t sums = 6;  // of both, of both squared, of their product, and of the weights
    using Rows = std::array<std::vector<double>, sums>;

    std::size_t used() const { return present_ == nullptr ? sums - 1 : sums; }

    // The weighted sums of a row, kept for the eleven rows of windows that it is in.
    void add_across(std::size_t row) {
        levels_.copy(0, row * columns_, products_[0]);
        levels_.copy(1, row * columns_, products_[1]);
        const double* const one = products_[0].data();
        const double* const two = products_[1].data();
        for (std::size_t column = 0; column < columns_; ++column) {
            products_[2][column] = one[column] * one[column];
            products_[3][column] = two[column] * two[column];
            products_[4][column] = one[column] * two[column];
        }
        if (present_ != nullptr)
            for (std::size_t column = 0; column < columns_; ++column)
                products_[5][column] = present_[row * columns_ + column] ? 1.0 : 0.0;
        for (std::size_t which = 0; which < used(); ++which) {
            const double* const in = products_[which].data();
            std::array<const double*, width> shifted;
            for (std::size_t i = 0; i < width; ++i) shifted[i] = in + i;
            weigh(shifted, across_[row % width][which].data());
        }
    }

    void add_down(std::size_t top) {
        for (std::size_t which = 0; which < used(); ++which) {
            std::array<const double*, width> rows;
            for (std::size_t i = 0; i < width; ++i) rows[i] = across_[(top + i) % width][which].data();
            weigh(rows, means_[which].data());
        }
    }

    // The weighted sums of eleven values each; weights are the same on both sides of the middle one.
    void weigh(const std::array<const double*, width>& in, double* __restrict out) const {
        const double w0 = weights_[0], w1 = weights_[1], w2 = weights_[2], w3 = weights_[3], w4 = weights_[4];
        const double w5 = weights_[5];
        const auto [a, b, c, d, e, f, g, h, i, j, k] = in;
        for (std::size_t column = 0; column + width <= columns_; ++column)
            out[column] = w5 * f[column] + w4 * (e[column] + g[column]) + w3 * (d[column] + h[column]) +
                          w2 * (c[column] + i[column]) + w1 * (b[column] + j[column]) + w0 * (a[column] + k[column]);
    }

    // The similarity of each window of a row; not a number where all of its values are missing.
    void compare() {
        const auto [one, two, square_one, square_two, product, weight] = pointers(means_);
        double* __restrict const out = similarities_.data();
        for (std::size_t column = 0; column + width <= columns_; ++column) {
            const double share = present_ == nullptr ? 1.0 : 1.0 / weight[column];
            const double a = one[column] * share, b = two[column] * share, ab = a * b, squares = a * a + b * b;
            const double variances = (square_one[column] + square_two[column]) * share - squares;
            const double covariance = product[column] * share - ab;
            out[column] = ((2 * ab + stable) * (2 * covariance + stable)) / ((squares + stable) * (variances + stable));
        }
    }

    static std::array<const double*, sums> pointers(const Rows& rows) {
        return {rows[0].data(), rows[1].data(), rows[2].data(), rows[3].data(), rows[4].data(), rows[5].data()};
    }

    Levels<T> levels_;
    const bool* present_;
    std::size_t rows_, columns_;
    std::array<double, width> weights_{};
    std::vector<double> similarities_;
    Rows products_, means_;
    std::array<Rows, width> across_;
};

}  // namespace tamis::values
