#include <tessera/network.hpp>
#include <tessera/operation/layer/descriptions.hpp>

namespace tessera::engine {

inferred infer_at_run_time(const signature& what, const static_vector<operand, 4>& operands) {
  return detail::inferred_of(what, operands);
}

#define TESSERA_HELD(description) \
  template layer_plan plan_described<description>(const void*, std::span<const tensor_value* const>);
TESSERA_DESCRIPTIONS(TESSERA_HELD)
#undef TESSERA_HELD

}  // namespace tessera::engine
