// A Lasso on sums of products, solved exactly: the coefficients that are not zero and their signs, and a factor of their
// Gram matrix that follows them from one strength to the next.
#pragma once
#include <memory>

#include "growing_factor.hpp"

namespace tasksieve {

// One task of a problem on Gram matrices, of which nothing is copied.
struct EntryProblem {
    const double *gram = nullptr;   // panels of the Gram matrix (gram_path.hpp)
    index_t features = 0;
    const double *sizes = nullptr;  // norms of the columns as they were summed
    const double *group = nullptr, *l1 = nullptr;  // a coefficient's strength is their sum times lam
    double rounding = 0.0;          // relative error of the products
    double least = 0.0;             // coefficients with less effect than this are nothing but rounding
    bool positive = false;
};

// With the signs s of the coefficients A that are not zero the minimum solves (G_AA + ridge) w = c_A - lam s. The way
// there stops where a coefficient would change its sign, which then leaves; whatever exceeds its threshold at the end
// comes in. Each round lowers the objective, and there are finitely many A and s (Lee, Battle, Raina and Ng 2007).
class ActiveSet {
  public:
    explicit ActiveSet(const EntryProblem &problem);

    enum class Round { moved, still, dependent };  // still: at the minimum; dependent: there is no factor of what w uses

    // One round from coefficients w (one every `stride`) with correlations h = c - G w, which then are computed anew from
    // c and the new w alone. `work` counts multiplications.
    Round round(double lam, double ridge, const double *cross, double *w, index_t stride, double *h, double &work);

  private:
    const double *row(index_t feature);
    void correlations(const double *cross, const double *w, index_t stride, double *h);
    bool append(index_t feature, double sign);
    void remove(index_t place);
    double threshold(double lam, index_t j) const { return lam * (p_.group[j] + p_.l1[j]); }

    EntryProblem p_;
    double ridge_ = 0.0;
    GrowingFactor factor_;
    std::vector<index_t> active_;  // features in the order of the factor
    std::vector<double> sign_, open_, step_, column_;
    std::vector<char> inside_;  // by feature
    std::vector<std::unique_ptr<double[]>> rows_;  // of the Gram matrix, each in one piece, of features that ever came in
    std::vector<std::pair<double, index_t>> coming_;
};

}  // namespace tasksieve
