// The losses of the graph models, as Fenchel and Young pair them; compiled with the options of the file that uses them.
#pragma once
#include "dual_coordinate.hpp"
#include "losses.hpp"

namespace tasksieve {
namespace {

double x_log_x(double x) { return x > 0 ? x * std::log(x) : 0.0; }

// c l(z) + c l*(-beta / c) + beta z.
TASKSIEVE_INLINE double fenchel(int loss, double epsilon, double z, double y, double c, double beta) {
    switch (loss) {
        case HINGE: {
            const double g = y * z - 1.0;
            return y * beta * g + (g < 0 ? -c * g : 0.0);
        }
        case SQUARED_HINGE: {
            const double a = y * beta, u = 1.0 - y * z, over = u > 0 ? u : 0.0;
            return c * over * over - a * u + a * a / (4.0 * c);
        }
        case LOGISTIC: {
            const double a = y * beta, share = a / c;
            return c * (log1p_exp(-y * z) + x_log_x(share) + x_log_x(1.0 - share)) + a * y * z;
        }
        default: {
            const double g = z - y, over = std::max(std::fabs(g) - epsilon, 0.0), base = beta * g + epsilon * std::fabs(beta);
            return loss == EPSILON ? c * over + base : c * over * over + base + beta * beta / (4.0 * c);
        }
    }
}

}  // namespace
}  // namespace tasksieve
