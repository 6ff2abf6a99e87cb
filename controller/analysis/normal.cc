#include "controller/analysis/normal.h"

#include <cmath>
#include <numbers>

namespace pipeyard::analysis {
namespace {

// Abramowitz & Stegun 26.2.23: absolute error below 4.5e-4, enough for Newton to converge.
double UpperTailStart(double p) {
  const double t = std::sqrt(-2 * std::log(p));
  return t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                 (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
}

}  // namespace

double NormalCdf(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

double NormalQuantile(double p) {
  double z = p < 0.5 ? -UpperTailStart(p) : UpperTailStart(1 - p);
  for (int step = 0; step < 4; ++step) {
    const double density = std::exp(-z * z / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
    z -= (NormalCdf(z) - p) / density;
  }
  return z;
}

}  // namespace pipeyard::analysis
