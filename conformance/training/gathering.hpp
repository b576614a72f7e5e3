#pragma once
// Moves of whole dimensions, of which products and attention are composed.

#include "attempt.hpp"

#include <functional>

namespace conformance::training {

/// Copies along the axes that cut a dimension, to be used differently.
layout gathered(layout x, int dim);

/// The elements [begin, end) of a dimension, on the workers that have them.
tensor<dyn> range(const tensor<dyn>& x, int dim, index_t begin, index_t end);

/// f of so many elements of a dimension of b at a time, gathered over dimension `over`; the results stand side by side,
/// in their last dimension. All at once where `chunk` says nothing.
tensor<dyn> in_chunks(const tensor<dyn>& b, int dim, int over, index_t chunk,
                      const std::function<tensor<dyn>(const tensor<dyn>&)>& f);

}  // namespace conformance::training
