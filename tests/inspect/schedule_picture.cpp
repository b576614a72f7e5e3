#include "tests/support/catch.hpp"

#include <tessera/inspect/schedule.hpp>

using namespace tessera;

TEST_CASE("a schedule is drawn as time by stage", "[plan]") {
  CHECK(picture(pipeline::schedule{pipeline::order::one_f_one_b, {2, 2}}) ==
        "stage 0    0  1  . 0b  . 1b\n"
        "stage 1    .  0 0b  1 1b  .\n"
        "6 steps, 33.3 % of them waiting; a stage keeps 2 micro-batches at most\n");
  CHECK(picture(pipeline::schedule{pipeline::order::interleaved, {1, 1, 2}}) ==
        "stage 0    0A  0B 0Bb 0Ab\n"
        "4 steps, 0.0 % of them waiting; a stage keeps 2 micro-batches at most\n");
  CHECK(picture(pipeline::schedule{pipeline::order::gpipe, {0, 1}}).find("[tessera.pipeline.empty]") == 0);
}
