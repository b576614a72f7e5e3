#pragma once

#include <tessera/operation/rule/infer.hpp>

#ifdef TESSERA_COMPILED
namespace tessera::engine {

inferred infer_at_run_time(const signature& op, const static_vector<operand, 4>& operands) {
  return detail::inferred_of(op, operands);
}

}  // namespace tessera::engine
#endif
