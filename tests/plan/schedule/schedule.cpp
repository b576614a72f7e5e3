#include "tests/support/catch.hpp"

#include <tessera/plan/schedule/schedule_run.hpp>

#include <algorithm>
#include <map>
#include <span>
#include <vector>

// Schedules of pipelines: what their formulas say, against what is known of them and against a run by another rule.

namespace tessera::schedules {

using pipeline::operation;
using pipeline::order;
using pipeline::schedule;
using pipeline::work;

namespace {

constexpr bool same(const refusal& a, const refusal& b) {
  return a.because == b.because && a.count == b.count && std::equal(a.numbers, a.numbers + a.count, b.numbers);
}

/// The span of a schedule by asking, at each step of time, which stages can go on.
template <class Schedule>
int span_step_by_step(const Schedule& s) {
  std::map<std::array<int, 3>, int> ended;  // forward or backward, part, micro-batch
  std::vector<int> next(static_cast<std::size_t>(s.of.stages));
  const int parts = s.of.stages * s.of.chunks;
  for (int now = 0, idle = 0; idle < 2; ++now) {
    std::vector<std::pair<std::array<int, 3>, int>> ending;
    for (int stage = 0; stage < s.of.stages; ++stage) {
      int& i = next[static_cast<std::size_t>(stage)];
      if (i == pipeline::engine::count_of(s, stage)) continue;
      const operation x = s.at(stage, i);
      const int part = x.chunk * s.of.stages + stage;
      const auto there = [&](int back, int of_part) {
        const auto found = ended.find({back, of_part, x.micro_batch});
        return found != ended.end() && found->second <= now;
      };
      const bool ready = x.does == work::forward ? part == 0 || there(0, part - 1)
                                                 : there(0, part) && (part == parts - 1 || there(1, part + 1));
      if (!ready) continue;
      ending.push_back({{x.does == work::forward ? 0 : 1, part, x.micro_batch}, now + 1});
      ++i;
    }
    ended.insert(ending.begin(), ending.end());
    idle = ending.empty() ? idle + 1 : 0;
    const bool over = std::all_of(next.begin(), next.end(), [&](const int& i) {
      return i == pipeline::engine::count_of(s, static_cast<int>(&i - next.data()));
    });
    if (over) return now + 1;
  }
  return -1;
}

using lists = std::vector<std::vector<operation>>;

/// The run of a schedule of one's own.
pipeline::run run_of(const pipeline::extent& of, const lists& stages) {
  const std::vector<std::span<const operation>> spans(stages.begin(), stages.end());
  return pipeline::run_of(pipeline::listed_schedule{of, spans});
}

lists listed(const schedule& s) {
  lists all;
  for (int stage = 0; stage < s.of.stages; ++stage) {
    all.emplace_back();
    for (int i = 0; i < s.count(); ++i) all.back().push_back(s.at(stage, i));
  }
  return all;
}

}  // namespace

TEST_CASE("a schedule is a constant: its order, its span, what a stage keeps", "[plan]") {
  constexpr schedule four{order::one_f_one_b, {4, 8}};
  STATIC_REQUIRE(pipeline::run_of(four).why.ok());
  STATIC_REQUIRE(pipeline::run_of(four).span == 22);
  STATIC_REQUIRE(pipeline::run_of(four).live == std::initializer_list<int>{4, 3, 2, 1});
  STATIC_REQUIRE(four.at(2, 3) == operation{work::forward, 2});
  constexpr schedule chunks{order::interleaved, {2, 4, 2}};
  STATIC_REQUIRE(pipeline::run_of(chunks).span == 18);
  STATIC_REQUIRE(chunks.warm_up(0) == 4);
  STATIC_REQUIRE(
      same(pipeline::run_of(schedule{order::one_f_one_b, {2, 0}}).why, refusal{code::pipeline_empty, 2, 0, 1}));
}

TEST_CASE("every schedule ends, in the time and with the micro-batches that its formula says", "[law]") {
  int wrong = 0;
  for (int stages = 1; stages <= 16; ++stages)
    for (int micro_batches = 1; micro_batches <= 64; ++micro_batches) {
      const pipeline::run all = pipeline::run_of(schedule{order::gpipe, {stages, micro_batches}});
      const pipeline::run turns = pipeline::run_of(schedule{order::one_f_one_b, {stages, micro_batches}});
      const pipeline::run forward = pipeline::run_of(schedule{order::forward_only, {stages, micro_batches}});
      wrong += !all.why.ok() || !turns.why.ok() || !forward.why.ok();
      wrong += all.span != 2 * (micro_batches + stages - 1) || turns.span != all.span;
      wrong += forward.span != micro_batches + stages - 1;
      // (S - 1) / (M + S - 1) of the time a stage waits
      wrong += std::abs(turns.bubble() - (stages - 1.0) / (micro_batches + stages - 1)) > 1e-12;
      for (int s = 0; s < stages; ++s) {
        wrong += all.live[s] != micro_batches;
        wrong += turns.live[s] != std::min(micro_batches, stages - s);
      }
    }
  CHECK(wrong == 0);
}

TEST_CASE("interleaved schedules end for any number of micro-batches, sooner than others", "[law]") {
  int wrong = 0;
  for (int stages = 1; stages <= 16; ++stages)
    for (int chunks = 1; chunks <= 4; ++chunks)
      for (int micro_batches = 1; micro_batches <= 64; ++micro_batches) {
        const schedule s{order::interleaved, {stages, micro_batches, chunks}};
        const pipeline::run r = pipeline::run_of(s);
        wrong += !r.why.ok() || (micro_batches <= 9 && r.span != span_step_by_step(s));
        // of micro-batches that come in full rounds a chunk is passed as a stage: a chunks-th of the waiting
        if (micro_batches % stages == 0) wrong += r.span != 2 * (micro_batches * chunks + stages - 1);
      }
  CHECK(wrong == 0);
}

TEST_CASE("a run by another rule takes as long", "[law]") {
  for (const order by : {order::gpipe, order::one_f_one_b, order::forward_only})
    for (const auto& [stages, micro_batches] : {std::pair{1, 1}, {3, 2}, {4, 9}, {7, 7}}) {
      const schedule s{by, {stages, micro_batches}};
      CHECK(pipeline::run_of(s).span == span_step_by_step(s));
      CHECK(run_of(s.of, listed(s)).span == span_step_by_step(s));
    }
}

TEST_CASE("backwards of inputs and of weights apart leave less waiting", "[plan]") {
  // ZB-H1 of two stages and three micro-batches (P. Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024).
  const auto f = [](int m) { return operation{work::forward, m}; };
  const auto b = [](int m) { return operation{work::backward_of_inputs, m}; };
  const auto w = [](int m) { return operation{work::backward_of_weights, m}; };
  const pipeline::run r = run_of({2, 3}, {{f(0), f(1), b(0), f(2), w(0), b(1), w(1), b(2), w(2)},
                                          {f(0), b(0), w(0), f(1), b(1), w(1), f(2), b(2), w(2)}});
  CHECK(r.why.ok());
  CHECK(r.operations == 18);
  CHECK((r.live == std::initializer_list<int>{3, 1}));
  CHECK(r.bubble() < pipeline::run_of(schedule{order::one_f_one_b, {2, 3}}).bubble());
}

TEST_CASE("ZB-H1 waits a third of what 1F1B does, and keeps as much", "[law]") {
  int wrong = 0;
  for (int stages = 1; stages <= 16; ++stages)
    for (int micro_batches = 1; micro_batches <= 64; ++micro_batches) {
      const pipeline::run r = pipeline::run_of(schedule{order::zb_h1, {stages, micro_batches}});
      // with fewer micro-batches than stages, those that are missing leave their steps
      const int waiting = stages - 1 + std::max(0, stages - micro_batches);
      wrong += !r.why.ok() || r.span != 3 * micro_batches + waiting;
      for (int s = 0; s < stages; ++s) wrong += r.live[s] > std::min(micro_batches, stages);
    }
  CHECK(wrong == 0);
  STATIC_REQUIRE(pipeline::run_of(schedule{order::zb_h1, {4, 8}}).span == 3 * 8 + 3);
}

TEST_CASE("ZB-V waits nowhere between the first and the last operation of a stage, and keeps what 1F1B does", "[law]") {
  int wrong = 0;
  for (int stages = 1; stages <= 16; ++stages)
    for (int micro_batches = 1; micro_batches <= 64; ++micro_batches) {
      const schedule s{order::zb_v, {stages, micro_batches, 2, true}};
      const pipeline::run r = pipeline::run_of(s);
      wrong += !r.why.ok() || r.operations != 6 * stages * micro_batches;
      const int missing = std::max(0, 2 * stages - 1 - micro_batches);
      if (missing == 0) wrong += r.span != 6 * micro_batches + stages - 1;
      for (int stage = 0; stage < stages && r.why.ok(); ++stage) {
        const int begins = r.begin_of(stage, 0), ends = r.begin_of(stage, s.count() - 1) + 1;
        const int waits = ends - begins - s.count();
        wrong += begins != stage || waits > 2 * missing;
        wrong += r.live[stage] > 2 * std::min(stages, micro_batches);
        int before = 0;
        while (s.at(stage, before).does == work::forward) ++before;
        wrong += before != s.warm_up(stage);
      }
    }
  CHECK(wrong == 0);
  STATIC_REQUIRE(pipeline::run_of(schedule{order::zb_v, {4, 8, 2, true}}).span == 6 * 8 + 3);
  STATIC_REQUIRE(pipeline::run_of(schedule{order::zb_v, {3, 2, 2, true}}).why.ok());
  CHECK(same(pipeline::run_of(schedule{order::zb_v, {3, 2, 2}}).why, refusal{code::pipeline_not_v, 2}));
  CHECK(same(pipeline::run_of(schedule{order::zb_v, {3, 2, 1, true}}).why, refusal{code::pipeline_not_v, 1}));
}

TEST_CASE("steps stand behind all backwards of a stage, and change no other time", "[law]") {
  int wrong = 0;
  for (const order by : {order::gpipe, order::one_f_one_b, order::interleaved, order::zb_h1, order::zb_v})
    for (int stages = 1; stages <= 6; ++stages)
      for (int micro_batches = 1; micro_batches <= 12; ++micro_batches) {
        const bool turns = by == order::zb_v;
        const pipeline::extent of{stages, micro_batches, turns || by == order::interleaved ? 2 : 1, turns};
        const schedule plain{by, of}, s{by, of, true};
        const pipeline::run before = pipeline::run_of(plain), free = pipeline::run_of(s);
        const pipeline::run r = pipeline::run_of(s, {.step = 3});
        wrong += !r.why.ok() || !free.why.ok() || s.count() != plain.count() + 1;
        wrong += free.span != before.span || free.bubble() != before.bubble();
        wrong += r.operations != before.operations + stages || r.busy != before.busy + 3 * stages;
        int last = 0;
        for (int stage = 0; stage < stages; ++stage) {
          int i = 0;
          for (; i < plain.count(); ++i) {
            wrong += !(s.at(stage, i) == plain.at(stage, i));
            wrong += r.begin_of(stage, i) != before.begin_of(stage, i);
          }
          wrong += free.live[stage] != before.live[stage];
          // it begins when its own stage is ready, whatever others still do
          const operation backward = plain.at(stage, i - 1);
          wrong += !(s.at(stage, i) == operation{work::step, backward.micro_batch, backward.chunk});
          wrong += r.begin_of(stage, i) != before.begin_of(stage, i - 1) + 1;
          last = std::max(last, r.begin_of(stage, i) + 3);
        }
        wrong += r.span != std::max(before.span, last);
      }
  CHECK(wrong == 0);
  STATIC_REQUIRE(pipeline::run_of(schedule{order::zb_h1, {4, 8}, true}, {.step = 2}).span == 3 * 8 + 3 + 2);
}

TEST_CASE("operations take as long as is said", "[plan]") {
  // a backward is twice a forward: M (1 + 2) of its own, and (S − 1) (1 + 2) in which a stage waits for others
  constexpr schedule turns{order::one_f_one_b, {4, 8}}, zero_bubble{order::zb_h1, {4, 16}};
  STATIC_REQUIRE(pipeline::run_of(turns, {.backward = 2}).span == 3 * (8 + 3));
  STATIC_REQUIRE(pipeline::run_of(turns, {.backward = 2}).busy == 4 * 3 * 8);
  // and in ZB-H1 with F = W = 2 and B = 3 the stages wait (S − 1) (F + B − W) (the paper's table 2)
  constexpr pipeline::times each{.forward = 2, .backward_of_inputs = 3, .backward_of_weights = 2};
  STATIC_REQUIRE(pipeline::run_of(zero_bubble, each).span == 16 * (2 + 3 + 2) + 3 * (2 + 3 - 2));
}

TEST_CASE("a step that comes too early, twice or on some stages alone is refused, and times that are none",
          "[refusal]") {
  const auto f = [](int m) { return operation{work::forward, m}; };
  const auto b = [](int m) { return operation{work::backward, m}; };
  const auto i = [](int m) { return operation{work::backward_of_inputs, m}; };
  const auto w = [](int m) { return operation{work::backward_of_weights, m}; };
  const auto s = [](int m, int chunk = 0) { return operation{work::step, m, chunk}; };
  const auto why = [](const lists& stages) { return run_of({2, 2}, stages).why; };
  const std::vector<operation> all{f(0), f(1), b(0), b(1), s(1)};
  CHECK(why({all, all}).ok());
  CHECK(why({all, {f(0), i(0), f(1), i(1), w(0), w(1), s(0)}}).ok());
  CHECK(same(why({all, {f(0), f(1), b(0), s(1), b(1)}}), refusal{code::pipeline_step, 1, 3}));
  CHECK(same(why({all, {f(0), i(0), f(1), i(1), w(0), s(1), w(1)}}), refusal{code::pipeline_step, 1, 5}));
  CHECK(same(why({{s(0), f(0), f(1), b(0), b(1)}, all}), refusal{code::pipeline_step, 0, 0}));
  CHECK(same(why({all, {f(0), f(1), b(0), b(1), s(1), s(1)}}), refusal{code::pipeline_step, 1, 5}));
  CHECK(same(why({all, {f(0), f(1), b(0), b(1), s(2)}}), refusal{code::pipeline_operation, 1, 4}));
  CHECK(same(why({all, {f(0), f(1), b(0), b(1), s(1, 1)}}), refusal{code::pipeline_operation, 1, 4}));
  CHECK(same(why({all, {f(0), f(1), b(0), b(1)}}), refusal{code::pipeline_incomplete, 1, 1}));
  CHECK(same(why({all, {f(0), f(1), b(0), s(1)}}), refusal{code::pipeline_step, 1, 3}));
  CHECK(same(pipeline::run_of(schedule{order::forward_only, {2, 2}, true}).why, refusal{code::pipeline_step, 0, 2}));
  const schedule turns{order::one_f_one_b, {2, 2}};
  CHECK(same(pipeline::run_of(turns, {.forward = 0}).why, refusal{code::pipeline_times, 0}));
  CHECK(same(pipeline::run_of(turns, {.step = -1}).why, refusal{code::pipeline_times, -1}));
}

TEST_CASE("a network that turns back at its last stage has its end on the first one", "[plan]") {
  constexpr pipeline::extent of{3, 2, 3, true};
  for (int part = 0; part < of.parts(); ++part) CHECK(of.part_of(of.stage_of(part), part / 3) == part);
  STATIC_REQUIRE(of.stage_of(2) == 2);
  STATIC_REQUIRE(of.stage_of(3) == 2);
  STATIC_REQUIRE(of.stage_of(5) == 0);
  STATIC_REQUIRE(of.stage_of(6) == 0);
  const auto f = [](int m, int chunk) { return operation{work::forward, m, chunk}; };
  const auto b = [](int m, int chunk) { return operation{work::backward, m, chunk}; };
  const pipeline::extent two{2, 1, 2, true};
  const pipeline::run r = run_of(two, {{f(0, 0), f(0, 1), b(0, 1), b(0, 0)}, {f(0, 0), f(0, 1), b(0, 1), b(0, 0)}});
  CHECK(r.why.ok());
  CHECK(r.span == 8);
}

TEST_CASE("micro-batches that overtake each other are refused", "[refusal]") {
  const auto f = [](int m) { return operation{work::forward, m}; };
  const auto b = [](int m) { return operation{work::backward, m}; };
  const auto why = [](const lists& stages) { return run_of({2, 2}, stages).why; };
  CHECK(why({{f(0), f(1), b(0), b(1)}, {f(0), f(1), b(0), b(1)}}).ok());
  CHECK(same(why({{f(0), f(1), b(0), b(1)}, {f(1), f(0), b(0), b(1)}}), refusal{code::pipeline_overtakes, 1, 0, 0}));
  CHECK(same(why({{f(0), f(1), b(1), b(0)}, {f(0), f(1), b(0), b(1)}}), refusal{code::pipeline_overtakes, 0, 2, 0}));
}

TEST_CASE("a schedule that deadlocks, repeats, leaves out or runs too early is refused", "[refusal]") {
  const auto f = [](int m) { return operation{work::forward, m}; };
  const auto b = [](int m) { return operation{work::backward, m}; };
  const auto why = [](const lists& stages, int micro_batches) { return run_of({2, micro_batches}, stages).why; };
  CHECK(why({{f(0), b(0)}, {f(0), b(0)}}, 1).ok());
  // The first stage waits for a gradient that the second gives only behind a forward that the first has not run.
  CHECK(same(why({{f(0), b(0), f(1), b(1)}, {f(0), f(1), b(0), b(1)}}, 2), refusal{code::pipeline_deadlock, 0, 1, 1}));
  CHECK(same(why({{f(0), f(0)}, {f(0), b(0)}}, 1), refusal{code::pipeline_operation, 0, 1}));
  CHECK(same(why({{f(0), b(0)}, {b(0), f(0)}}, 1), refusal{code::pipeline_operation, 1, 0}));
  CHECK(same(why({{f(0), b(0)}, {f(1), b(1)}}, 1), refusal{code::pipeline_operation, 1, 0}));
  CHECK(same(why({{f(0)}, {f(0), b(0)}}, 1), refusal{code::pipeline_incomplete, 0, 1}));
  CHECK(same(why({{f(0), b(0)}}, 1), refusal{code::pipeline_lists, 2, 1}));
}

}  // namespace tessera::schedules
