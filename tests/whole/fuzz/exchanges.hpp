#pragma once
// A case as LibTorch tensors on threads, and over NCCL: what arrives, the gradient, and what it cost.

#include "fuzz_case.hpp"
#include "tests/support/in_workers.hpp"

namespace tessera::testing::fuzz {

using namespace engine;

/// The names of all elements that a tensor can hold: those that LibTorch and the library both have.
std::vector<std::string> element_names();

/// What is wrong when a case is executed, or nothing.
std::string judge_exchange(const fuzz_case& c, const carried& over = by_itself);

/// The same over NCCL, with a machine of no devices behind it.
std::string judge_on_devices(const fuzz_case& c);

}  // namespace tessera::testing::fuzz
