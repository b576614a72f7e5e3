#pragma once

#include <tessera/meta/refusal.hpp>

/// The refusals of this floor: the code, the numbers, and a sentence that says what is wrong and what to do.
namespace tessera::code {

inline constexpr reason not_a_tiling{
    "tessera.move.tiling", "axis, dimension or none",
    "a Move starts from a tiling: an axis that is partial, or a haloed dimension, must be folded first"};
inline constexpr reason replicate_added_to_partial{
    "tessera.rule.sum", "axis, operand",
    "a whole value added to each term would be counted once for each worker; change it to partial first"};
inline constexpr reason cost_overflows{
    "tessera.cost.overflow", "",
    "more moves or is computed than can be counted, 2^63 - 1; make the tensor or the mesh smaller"};
inline constexpr reason pipeline_empty{
    "tessera.pipeline.empty", "stages, micro-batches, chunks",
    "a pipeline has a stage, a chunk of layers in each and a micro-batch at least; give it some"};
inline constexpr reason pipeline_lists{"tessera.pipeline.lists", "stages, lists",
                                       "a schedule has one list of operations for each stage; give it as many"};
inline constexpr reason pipeline_operation{
    "tessera.pipeline.operation", "stage, operation",
    "an operation of a schedule is of no micro-batch or chunk, comes twice, or is a backward without its forward; each "
    "stage runs every chunk once forward and once backward for each micro-batch"};
inline constexpr reason pipeline_step{
    "tessera.pipeline.step", "stage, operation",
    "a step of a schedule comes before a backward of its stage, or twice; let it be the last operation of the stage"};
inline constexpr reason pipeline_times{"tessera.pipeline.times", "steps",
                                       "an operation of a schedule takes a step of time at least, and a step of "
                                       "parameters 0; give no less"};
inline constexpr reason pipeline_incomplete{
    "tessera.pipeline.incomplete", "stage, operations missing",
    "a schedule leaves operations out; each stage runs every chunk once forward and once backward for each "
    "micro-batch, and steps where another stage does"};
inline constexpr reason pipeline_overtakes{
    "tessera.pipeline.order", "stage, operation, micro-batch that the stage before has there",
    "micro-batches overtake each other between two stages; let each part run them in the order of the part before"};
inline constexpr reason pipeline_deadlock{
    "tessera.pipeline.deadlock", "stage, operation, stage that it waits for",
    "stages of a schedule wait for one another; let each run what others wait for before it waits itself"};
inline constexpr reason pipeline_not_v{"tessera.pipeline.v", "chunks",
                                       "ZB-V has two chunks a stage and turns back at the last one; make an extent of "
                                       "two chunks that turns"};
inline constexpr reason more_stages_than_layers{"tessera.pipeline.stages", "layers, stages",
                                                "a stage would have no layer; take fewer stages"};
inline constexpr reason stages_given_otherwise{
    "tessera.pipeline.sizes", "sizes given, parts, layers in them, layers",
    "sizes or weights of stages do not fit the layers; give a size of 1 or more for each chunk of each stage, all "
    "layers in them, or a weight for each layer"};
inline constexpr reason micro_batches_differ{"tessera.pipeline.micro_batches", "samples, micro-batches",
                                             "a batch is not shared out by its micro-batches: samples are left over, "
                                             "or one has none; take a number that divides "
                                             "it, or say that they may be uneven"};

}  // namespace tessera::code
