#pragma once

#include <tessera/operation/rule/infer.hpp>

#ifdef TESSERA_COMPILED
namespace tessera::engine {

inferred infer_at_run_time(const signature& what, const static_vector<operand, 4>& operands) {
  return detail::inferred_of(what, operands);
}

}  // namespace tessera::engine
#endif
