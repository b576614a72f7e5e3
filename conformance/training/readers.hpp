#pragma once

#include "../cases.hpp"
#include "../task.hpp"

namespace conformance::training {

/// Whether the readers of training know a subject.
bool has_subject(const std::string& name);

/// Spells a case of training; throws `unbuilt` for one that asks for what is not there, or in words that are not known.
task read(const test_case& c);

}  // namespace conformance::training
