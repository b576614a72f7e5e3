#include "tests/support/tensors.hpp"

// A LibTorch that was built without its store, in a program that has one.
#undef USE_DISTRIBUTED
#define store_rendezvous store_rendezvous_without_one
#include <tessera/tensor/store_rendezvous_impl.hpp>

TEST_CASE("a LibTorch without the store by which processes meet is refused", "[refusal]") {
  using namespace tessera::engine;
  using namespace tessera;
  CHECK(testing::told([] { store_rendezvous(launch_environment{}, "here", std::chrono::seconds{1}); }) ==
        "tessera.launch.store");
}
