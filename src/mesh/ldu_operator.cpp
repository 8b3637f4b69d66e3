// SPDX-License-Identifier: Apache-2.0
#include "mesh/ldu_operator.hpp"

namespace krilu::mesh {

template class LduOperator<exec::Host>;
template class LduOperator<exec::Emulated>;

}  // namespace krilu::mesh
