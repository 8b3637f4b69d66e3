// SPDX-License-Identifier: Apache-2.0
// Vectors of space, for hosts and GPUs alike: positions (metres), face areas (square metres, along the normal),
// gradients.
#pragma once

#include "krilu/kernel.hpp"

namespace krilu {

struct Vector3 {
  double x, y, z;

  KRILU_INLINE Vector3& operator+=(const Vector3& o) {
    x += o.x;
    y += o.y;
    z += o.z;
    return *this;
  }
  friend KRILU_INLINE Vector3 operator+(const Vector3& a, const Vector3& b) {
    return {a.x + b.x, a.y + b.y, a.z + b.z};
  }
  friend KRILU_INLINE Vector3 operator-(const Vector3& a, const Vector3& b) {
    return {a.x - b.x, a.y - b.y, a.z - b.z};
  }
  friend KRILU_INLINE Vector3 operator-(const Vector3& a) { return {-a.x, -a.y, -a.z}; }
  friend KRILU_INLINE Vector3 operator*(double s, const Vector3& a) { return {s * a.x, s * a.y, s * a.z}; }
};

KRILU_INLINE double dot(const Vector3& a, const Vector3& b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
KRILU_INLINE Vector3 cross(const Vector3& a, const Vector3& b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

}  // namespace krilu
