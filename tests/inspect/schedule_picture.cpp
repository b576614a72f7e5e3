#include "tests/support/catch.hpp"

#include <tessera/inspect/svg_schedule.hpp>

#include <regex>

using namespace tessera;

/// The boxes of a picture that have a colour, each as left, top and width.
std::vector<std::array<double, 3>> boxes(const std::string& svg, const std::string& colour) {
  std::vector<std::array<double, 3>> all;
  const std::regex box("<rect x='([0-9.]+)' y='([0-9.]+)' width='([0-9.]+)' height='22' fill='" + colour + "'");
  for (std::sregex_iterator i(svg.begin(), svg.end(), box), end; i != end; ++i)
    all.push_back({std::stod((*i)[1]), std::stod((*i)[2]), std::stod((*i)[3])});
  return all;
}

TEST_CASE("a schedule as SVG has a box for each operation, and one for each that was measured", "[plan]") {
  const pipeline::schedule s{pipeline::order::one_f_one_b, {2, 2}};  // six steps of 150 pixels
  const std::string forwards = "#4477aa", backwards = "#449955";
  CHECK(boxes(svg_of(s), forwards) ==
        std::vector<std::array<double, 3>>{{84, 36, 150}, {234, 36, 150}, {234, 62, 150}, {534, 62, 150}});
  CHECK(boxes(svg_of(s), backwards) ==
        std::vector<std::array<double, 3>>{{534, 36, 150}, {834, 36, 150}, {384, 62, 150}, {684, 62, 150}});
  const std::vector<std::vector<pipeline::timed_operation>> t{{{{pipeline::work::forward, 0}, 0, 0, 1}},
                                                              {{{pipeline::work::forward, 0}, 1, 0.5, 3}}};
  CHECK(pipeline::span_of(t) == 3);
  CHECK(pipeline::bubble_of(t) == 1 - 2.5 / 6);
  const auto all = boxes(svg_of(s, t), forwards);
  REQUIRE(all.size() == 6);
  CHECK(all[4] == std::array<double, 3>{84, 124, 300});
  CHECK(all[5] == std::array<double, 3>{534, 150, 450});  // behind half a second in which it waited
  CHECK_THROWS(svg_of(pipeline::schedule{pipeline::order::gpipe, {0, 1}}));
  const pipeline::schedule steps{pipeline::order::one_f_one_b, {2, 2}, true};
  const std::string colour = "#aa3377";  // a step is a mark where it takes no time
  CHECK(boxes(svg_of(steps), colour) == std::vector<std::array<double, 3>>{{984, 36, 3}, {834, 62, 3}});
  CHECK(boxes(svg_of(steps, {}, {.step = 2}), colour) ==
        std::vector<std::array<double, 3>>{{759, 36, 225}, {646.5, 62, 225}});
}

TEST_CASE("a schedule is drawn as time by stage", "[plan]") {
  CHECK(picture(pipeline::schedule{pipeline::order::one_f_one_b, {2, 2}}) ==
        "stage 0    0  1  . 0b  . 1b\n"
        "stage 1    .  0 0b  1 1b  .\n"
        "6 steps, 33.3 % of them waiting; a stage keeps 2 micro-batches at most\n");
  CHECK(picture(pipeline::schedule{pipeline::order::interleaved, {1, 1, 2}}) ==
        "stage 0    0A  0B 0Bb 0Ab\n"
        "4 steps, 0.0 % of them waiting; a stage keeps 2 micro-batches at most\n");
  const pipeline::schedule steps{pipeline::order::one_f_one_b, {2, 2}, true};
  CHECK(picture(steps) ==
        "stage 0     0   1   .  0b   . 1bs\n"
        "stage 1     .   0  0b   1 1bs   .\n"
        "6 steps, 33.3 % of them waiting; a stage keeps 2 micro-batches at most\n");
  CHECK(picture(steps, {.backward = 2, .step = 2}) ==
        "stage 0    0  1  .  . 0b  -  . 1b  -  s  -\n"
        "stage 1    .  0 0b  -  1 1b  -  s  -  .  .\n"
        "11 steps, 27.3 % of them waiting; a stage keeps 2 micro-batches at most\n");
  CHECK(picture(pipeline::schedule{pipeline::order::gpipe, {0, 1}}).find("[tessera.pipeline.empty]") == 0);
}
