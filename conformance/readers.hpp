#pragma once

#include "cases.hpp"

namespace conformance {

/// Spells a case of the file; throws `unbuilt` for one that asks for what is not there, or in words that are not known.
trial read_trial(test_case c);

}  // namespace conformance
