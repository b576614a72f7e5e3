#include "tests/support/by_sockets.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/failing.hpp"

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

TEMPLATE_TEST_CASE("workers that do other operations than the rest disagree", "[refusal]", by_memory, by_sockets) {
  const auto all = in_world<TestType>(4, [](const std::shared_ptr<transport>& carrier) {
    return run(*carrier, gathering(4, carrier->rank() == 2 ? 13 : 12));
  });
  INFO(all.errors());
  CHECK(count_of(all.codes, disagree) == 4);
}

TEMPLATE_TEST_CASE("workers that skip an operation disagree with those that do not", "[refusal]", by_memory,
                   by_sockets) {
  const auto all = in_world<TestType>(3, [](const std::shared_ptr<transport>& carrier) {
    if (carrier->rank() != 1) run(*carrier, gathering(3, 5));
    return run(*carrier, gathering(3, 6));
  });
  INFO(all.errors());
  CHECK(count_of(all.codes, disagree) == 3);
}

TEMPLATE_TEST_CASE("what the core refuses by a value is told by a worker with its code", "[refusal]", by_memory,
                   by_sockets) {
  const auto all = in_world<TestType>(2, [](const std::shared_ptr<transport>& carrier) {
    const auto program = [](const std::shared_ptr<transport>&) { static_cast<void>(bind<dyn>(-8)); };
    tessera::detail::run_worker(carrier, threads_only(), program);
    return true;
  });
  for (const std::string& code : all.codes) CHECK(code == "tessera.shape.negative");
}

TEMPLATE_TEST_CASE(
    "an error says what each of two workers does, in the words of the field and with the place of its call",
    "[refusal]", by_memory, by_sockets) {
  const auto all = in_world<TestType>(3, [](const std::shared_ptr<transport>& carrier) {
    team_state team(carrier, line(3));
    const bool odd = carrier->rank() == 2;
    const call_context what{.name = odd ? "linear" : nullptr, .at = {"deep/in/train.cpp", odd ? 12 : 7}};
    bind_exchange(*carrier, gathering(3, odd ? 50 : 33), element::float64, what);
    return true;
  });
  CHECK(count_of(all.codes, disagree) == 3);
  for (const std::string& text : all.texts) {
    CHECK(text == all.texts[0]);
    CHECK(text.find("all_gather of 33 double at train.cpp:7") != std::string::npos);
    CHECK(text.find("worker 2: linear: all_gather of 50 double at train.cpp:12") != std::string::npos);
  }
}

TEMPLATE_TEST_CASE("calls of one plan for different purposes never meet", "[refusal]", by_memory, by_sockets) {
  const auto all = in_world<TestType>(4, [](const std::shared_ptr<transport>& carrier) {
    const auto forward = bind_exchange(*carrier, gathering(4, 12), element::float64, {.why = purpose::forward});
    const auto backward = bind_exchange(*carrier, gathering(4, 12), element::float64, {.why = purpose::backward});
    std::vector<double> x(4);
    std::vector<double> y(13);
    const bool odd = carrier->rank() == 3;
    const auto& e = odd ? forward : backward;
    e->start(memory_of(x, e->input_extents()), memory_of(y, e->output_extents()),
             {.why = odd ? purpose::forward : purpose::backward})
        .finish();
    return true;
  });
  INFO(all.errors());
  CHECK(count_of(all.codes, disagree) == 4);
}
