#pragma once

#include <tessera/operation/network/descriptions.hpp>

#ifdef TESSERA_COMPILED
namespace tessera::engine {

#define TESSERA_HELD(description) \
  template layer_plan plan_described<description>(const void*, std::span<const tensor_value* const>);
TESSERA_DESCRIPTIONS(TESSERA_HELD)
#undef TESSERA_HELD

}  // namespace tessera::engine
#endif
