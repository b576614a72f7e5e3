#pragma once

#include <tessera/meta/integer.hpp>

namespace tessera::engine {

/// On the host a block has so many queries where they are compared with keys by place: LibTorch's kernel meets as many.
inline constexpr index_t queries_of_block = 256;
/// For more queries than these, keys and values are laid side by side: that kernel reads them again for each of its own
/// blocks.
inline constexpr index_t queries_of_one_reading = 64;
/// Where scores are held, a block has about so many.
inline constexpr index_t scores_of_block = index_t{1} << 18;

/// How attention meets its keys, by which the memory is counted that it takes meanwhile.
struct attended_keys {
  enum class by : signed char {
    none,    ///< there is no attention
    kernel,  ///< LibTorch's fused kernel meets all at once
    blocks,  ///< that kernel meets them in blocks, whose results merge
    scores   ///< the scores of blocks are held, as where weights are dropped
  };
  by how = by::none;
  signed char sequence = 0;  ///< the dimension of queries and keys
  bool by_place = false;     ///< queries and keys are compared by their places
  bool masked = false;       ///< the fourth operand says what is not seen
  bool added = false;        ///< in numbers that are added to scores, which have a gradient
  index_t reach = -1;        ///< of a window: so many keys beside a query's own place; −1 where there is none
};

}  // namespace tessera::engine
