#pragma once

#include <tessera/meta/verdict.hpp>
#include <tessera/plan/refusals.hpp>

// Made by scripts/make_verdicts from plan/refusals.hpp; a test holds the two against each other.

namespace tessera {

namespace with {

template <index_t> struct chunks;
template <index_t> struct dimension;
template <index_t> struct layers;
template <index_t> struct layers_in_them;
template <index_t> struct lists;
template <index_t> struct micro_batch_that_the_stage_before_has_there;
template <index_t> struct micro_batches;
template <index_t> struct operand;
template <index_t> struct operation;
template <index_t> struct operations_missing;
template <index_t> struct parts;
template <index_t> struct samples;
template <index_t> struct sizes_given;
template <index_t> struct stage;
template <index_t> struct stage_that_it_waits_for;
template <index_t> struct stages;
template <index_t> struct steps;

}  // namespace with

namespace verdicts {

template <class... Told> struct not_a_tiling {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.move.tiling] a Move starts from a tiling: an axis that is partial, or a haloed "
                  "dimension, must be folded first");
  }
};
template <class... Told> struct replicate_added_to_partial {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.rule.sum] a whole value added to each term would be counted once for each worker; change "
                  "it to partial first");
  }
};
template <class... Told> struct cost_overflows {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.cost.overflow] more moves or is computed than can be counted, 2^63 - 1; make the tensor "
                  "or the mesh smaller");
  }
};
template <class... Told> struct pipeline_empty {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.pipeline.empty] a pipeline has a stage, a chunk of layers in each and a micro-batch at "
                  "least; give it some");
  }
};
template <class... Told> struct pipeline_lists {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.pipeline.lists] a schedule has one list of operations for each stage; give it as many");
  }
};
template <class... Told> struct pipeline_operation {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.pipeline.operation] an operation of a schedule is of no micro-batch or chunk, comes "
                  "twice, or is a backward without its forward; each stage runs every chunk once forward and once "
                  "backward for each micro-batch");
  }
};
template <class... Told> struct pipeline_step {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.pipeline.step] a step of a schedule comes before a backward of its stage, or twice; let "
                  "it be the last operation of the stage");
  }
};
template <class... Told> struct pipeline_times {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.pipeline.times] an operation of a schedule takes a step of time at least, and a step of "
                  "parameters 0; give no less");
  }
};
template <class... Told> struct pipeline_incomplete {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.pipeline.incomplete] a schedule leaves operations out; each stage runs every chunk once "
                  "forward and once backward for each micro-batch, and steps where another stage does");
  }
};
template <class... Told> struct pipeline_overtakes {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.pipeline.order] micro-batches overtake each other between two stages; let each part run "
                  "them in the order of the part before");
  }
};
template <class... Told> struct pipeline_deadlock {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.pipeline.deadlock] stages of a schedule wait for one another; let each run what others "
                  "wait for before it waits itself");
  }
};
template <class... Told> struct pipeline_not_v {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.pipeline.v] ZB-V has two chunks a stage and turns back at the last one; make an extent "
                  "of two chunks that turns");
  }
};
template <class... Told> struct more_stages_than_layers {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.pipeline.stages] a stage would have no layer; take fewer stages");
  }
};
template <class... Told> struct stages_given_otherwise {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.pipeline.sizes] sizes or weights of stages do not fit the layers; give a size of 1 or "
                  "more for each chunk of each stage, all layers in them, or a weight for each layer");
  }
};
template <class... Told> struct micro_batches_differ {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.pipeline.micro_batches] a batch is not shared out by its micro-batches: samples are left "
                  "over, or one has none; take a number that divides it, or say that they may be uneven");
  }
};

}  // namespace verdicts

namespace detail {

template <> struct verdict_for<&code::not_a_tiling> {
  template <class Why> using type = verdicts::not_a_tiling<
      typename axis_of_refusal<Why>::type,
      typename number_or_none<with::dimension, Why::number(0)>::type>;
};
template <> struct verdict_for<&code::replicate_added_to_partial> {
  template <class Why> using type = verdicts::replicate_added_to_partial<
      typename axis_of_refusal<Why>::type,
      with::operand<Why::number(0)>>;
};
template <> struct verdict_for<&code::cost_overflows> { template <class Why> using type = verdicts::cost_overflows<>; };
template <> struct verdict_for<&code::pipeline_empty> {
  template <class Why> using type = verdicts::pipeline_empty<
      with::stages<Why::number(0)>,
      with::micro_batches<Why::number(1)>,
      with::chunks<Why::number(2)>>;
};
template <> struct verdict_for<&code::pipeline_lists> {
  template <class Why> using type = verdicts::pipeline_lists<with::stages<Why::number(0)>, with::lists<Why::number(1)>>;
};
template <> struct verdict_for<&code::pipeline_operation> {
  template <class Why> using type = verdicts::pipeline_operation<
      with::stage<Why::number(0)>,
      with::operation<Why::number(1)>>;
};
template <> struct verdict_for<&code::pipeline_step> {
  template <class Why> using type = verdicts::pipeline_step<
      with::stage<Why::number(0)>,
      with::operation<Why::number(1)>>;
};
template <> struct verdict_for<&code::pipeline_times> {
  template <class Why> using type = verdicts::pipeline_times<with::steps<Why::number(0)>>;
};
template <> struct verdict_for<&code::pipeline_incomplete> {
  template <class Why> using type = verdicts::pipeline_incomplete<
      with::stage<Why::number(0)>,
      with::operations_missing<Why::number(1)>>;
};
template <> struct verdict_for<&code::pipeline_overtakes> {
  template <class Why> using type = verdicts::pipeline_overtakes<
      with::stage<Why::number(0)>,
      with::operation<Why::number(1)>,
      with::micro_batch_that_the_stage_before_has_there<Why::number(2)>>;
};
template <> struct verdict_for<&code::pipeline_deadlock> {
  template <class Why> using type = verdicts::pipeline_deadlock<
      with::stage<Why::number(0)>,
      with::operation<Why::number(1)>,
      with::stage_that_it_waits_for<Why::number(2)>>;
};
template <> struct verdict_for<&code::pipeline_not_v> {
  template <class Why> using type = verdicts::pipeline_not_v<with::chunks<Why::number(0)>>;
};
template <> struct verdict_for<&code::more_stages_than_layers> {
  template <class Why> using type = verdicts::more_stages_than_layers<
      with::layers<Why::number(0)>,
      with::stages<Why::number(1)>>;
};
template <> struct verdict_for<&code::stages_given_otherwise> {
  template <class Why> using type = verdicts::stages_given_otherwise<
      with::sizes_given<Why::number(0)>,
      with::parts<Why::number(1)>,
      with::layers_in_them<Why::number(2)>,
      with::layers<Why::number(3)>>;
};
template <> struct verdict_for<&code::micro_batches_differ> {
  template <class Why> using type = verdicts::micro_batches_differ<
      with::samples<Why::number(0)>,
      with::micro_batches<Why::number(1)>>;
};

}  // namespace detail
}  // namespace tessera
