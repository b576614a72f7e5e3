#pragma once

#include <tessera/meta/refusal.hpp>

/// The refusals of this floor: the code, the numbers, and a sentence that says what is wrong and what to do.
namespace tessera::code {

inline constexpr reason not_a_maximum{"tessera.layer.indices", "",
                                      "only a maximum lies somewhere; ask a max_pool for indices"};
inline constexpr reason gate_no_number{
    "tessera.route.gate", "rows",
    "the scores of some rows make gates that are no numbers; look at what they are computed of"};
inline constexpr reason shared_differ{"tessera.network.shared", "",
                                      "what is shared has parameters of different shapes, elements or layouts; make "
                                      "them alike, or give it a name and parameters of its own"};
inline constexpr reason shared_rewritten{
    "tessera.network.rewritten", "",
    "a layer changes a weight in place that layers of several stages share; leave out max_norm, or give the layers of "
    "one of the stages a weight of their own"};
inline constexpr reason parameter_changed{
    "tessera.parameter.changed", "",
    "a parameter was stepped between a forward and its backward, which gathers it or computes with it again, or the "
    "gradient of one that is held was reduced there; step and reduce behind backward"};
inline constexpr reason gradient_not_reduced{
    "tessera.gradient.unreduced", "",
    "gradients of a parameter that is held wait to be reduced; call nn::reduce_gradients(net) behind the last "
    "backward, or let them go by zero_grad()"};
inline constexpr reason modules_differ{
    "tessera.data_parallel.module", "",
    "workers have modules of other parameters or buffers, or of other values; build the same module on all of them, or "
    "let the first worker's values be brought"};
inline constexpr reason gradients_bundled_twice{
    "tessera.data_parallel.twice", "",
    "the gradients of this parameter are averaged already; make one data_parallel of a module, and let it live as long "
    "as the training"};
inline constexpr reason gradient_is_sparse{"tessera.data_parallel.sparse", "",
                                           "a sparse gradient has no range of a bundle; make the embedding's dense"};
inline constexpr reason gradient_has_graph{
    "tessera.data_parallel.graph", "",
    "a gradient that is averaged inside backward has no gradient of its own; call backward without create_graph"};
inline constexpr reason stepped_inside_window{
    "tessera.data_parallel.window", "",
    "a parameter was stepped before its gradients were averaged; say window(true) for the last backward before a step"};
inline constexpr reason parameters_changed{
    "tessera.data_parallel.parameters", "expected, found",
    "the module has other parameters than when it was made data parallel; make another data_parallel of it"};
inline constexpr reason two_windows{"tessera.data_parallel.windows", "",
                                    "a window is open already; let it end before the next one"};
inline constexpr reason weight_below_zero{"tessera.data_parallel.weight", "",
                                          "a weight is zero or more, as a number of samples is"};
inline constexpr reason step_not_gathered{
    "tessera.shards.gather", "",
    "blocks were stepped, and the parameters are what they were before; call gather() behind each step"};
inline constexpr reason gradient_is_divided{
    "tessera.shards.gradient", "",
    "the gradient of this parameter is divided over workers; let the optimizer step parameters() of the shards, and "
    "give no gradient by hand"};
inline constexpr reason divided_twice{
    "tessera.shards.twice", "",
    "somebody sums the gradients of this parameter already; make one bundle_shards or data_parallel of it"};
inline constexpr reason nothing_divided{"tessera.shards.none", "",
                                        "there is no parameter that asks for a gradient; give one or more"};
inline constexpr reason no_such_stage{"tessera.shards.stage", "stage",
                                      "flat shards are those of stages 1 and 2; for 3 write the network as a type, by "
                                      "sharded_over"};
inline constexpr reason decay_out_of_range{"tessera.average.decay", "", "a decay is a number from 0 to 1; correct it"};
inline constexpr reason averages_swapped_in{
    "tessera.average.swapped", "",
    "the averages stand in the network's place already; let what swapped_in() gave go first"};
inline constexpr reason average_trained{
    "tessera.average.stepped", "",
    "the network was trained while its averages stood in its place, and that is lost; let what swapped_in() gave go "
    "before a backward, a step or zero_grad()"};
inline constexpr reason scaling_out_of_range{
    "tessera.scaler.options", "",
    "a loss scale is a finite number from 1 on, growth from 1 on, backoff above 0 and at most 1, the interval a number "
    "of steps; correct them"};
inline constexpr reason loss_without_fractions{
    "tessera.scaler.loss", "", "a loss that is scaled has a gradient; make it one of real numbers with fractions"};
inline constexpr reason unscaled_twice{
    "tessera.scaler.twice", "",
    "these gradients were unscaled already; step once behind each backward of a scaled loss, before the next one, and "
    "clip either in unscale or in the step"};
inline constexpr reason half_unscaled{
    "tessera.scaler.half", "",
    "a gradient of float16 loses by unscaling what the scale kept; store the parameter in float, by weights_as or the "
    "masters of bundle_shards"};
inline constexpr reason scaled_leaves_differ{
    "tessera.scaler.leaves", "",
    "the optimizer steps parameters that are not judged here, whose gradients keep the scale; name the network or the "
    "shards that have them, or step several optimizers by a function"};
inline constexpr reason other_numbers{"tessera.training.state", "",
                                      "these are not the numbers that state() of this object gives; load those"};
inline constexpr reason loader_options_wrong{
    "tessera.loader.options", "",
    "a step takes one sample or more and a loader reads none or more batches ahead; name the axes that cut a batch "
    "where no tensor type says it, and there alone"};
inline constexpr reason dataset_without_size{
    "tessera.loader.size", "",
    "the data set does not say how many samples it has, so that none has a number; let its size() say it"};
inline constexpr reason epoch_without_steps{"tessera.loader.empty", "samples, batch",
                                            "an epoch has no step; give more samples, or make the batch smaller"};
inline constexpr reason sample_not_read{"tessera.loader.read", "",
                                        "samples cannot be read; look at what the data set says of them"};
inline constexpr reason samples_differ{
    "tessera.loader.shape", "worker, other worker",
    "two workers read samples of other extents or elements, which make no batch; give all samples the same ones"};
inline constexpr reason no_such_step{
    "tessera.loader.step", "asked, end",
    "there is no such epoch, step or sample; count from 0, below steps() or samples()"};
inline constexpr reason other_dataset{
    "tessera.loader.samples", "expected, found",
    "the loader's state is that of a data set with another number of samples; load it where that one is read"};
inline constexpr reason loader_state_wrong{
    "tessera.loader.state", "", "this is no state of a loader, or it was altered; load what state() of a loader gave"};
inline constexpr reason no_such_tokens{
    "tessera.tokens.sample", "",
    "tokens are uint16, uint32, int32 or int64, and samples have one or more and begin one or more apart; correct the "
    "options of the token file"};
inline constexpr reason too_few_tokens{"tessera.tokens.few", "needed, found",
                                       "the file has no sample of so many tokens with one behind it; name a longer "
                                       "file, or make samples shorter"};
inline constexpr reason parameter_not_shared{"tessera.network.part", "",
                                             "the network has nothing under this key that another could share; name "
                                             "the part's path as the keys of the state dict do, at(path)"};
inline constexpr reason flow_of_another_program{"tessera.network.flow", "",
                                                "a flow of another program comes in; let flows of one program meet"};
inline constexpr reason program_without_output{"tessera.network.output", "",
                                               "the program has no output; name what it gives by output(flow)"};
inline constexpr reason program_layer_unknown{
    "tessera.program.layer", "",
    "the file names a layer or a function that there is not; correct it, or add it to the table of layers"};
inline constexpr reason program_value_unknown{
    "tessera.program.value", "",
    "the file names a value that no input and no node gives; correct the name, or add what gives it"};
inline constexpr reason program_cycle{
    "tessera.program.cycle", "",
    "the nodes of the file wait for one another in a circle; let one of them read something else"};
inline constexpr reason layer_threw{"tessera.network.layer", "", "a layer threw an exception; look at what it says"};
inline constexpr reason other_results{
    "tessera.network.results", "has, says",
    "a layer that is a value has as many results as its type says; write static constexpr int results in it"};
inline constexpr reason file_missing{"tessera.file.missing", "",
                                     "the file cannot be read; look at its path and at the reason"};
inline constexpr reason file_not_written{"tessera.file.write", "",
                                         "the file cannot be written; look at its path and at the reason"};
inline constexpr reason disk_full{"tessera.file.space", "",
                                  "there is no room for the file; free some, or save it elsewhere"};
inline constexpr reason not_a_file{"tessera.file.kind", "",
                                   "this is no regular file; name one, not a folder or a device"};
inline constexpr reason file_truncated{"tessera.file.truncated", "expected, found",
                                       "the file ends too early; write or copy it again"};
inline constexpr reason file_altered{
    "tessera.file.altered", "", "the file's contents do not fit its checksum or its header; write or copy it again"};
inline constexpr reason file_not_ours{"tessera.file.format", "", "the file is in no safetensors format; name another"};
inline constexpr reason file_of_other_elements{
    "tessera.file.element", "", "the file holds elements that no tensor here has; convert them where it was written"};
inline constexpr reason other_parameters{
    "tessera.network.parameters", "expected, found",
    "these are other parameters than the network's; load those that the same network saved"};
inline constexpr reason checkpoint_missing{
    "tessera.checkpoint.missing", "",
    "there is no whole checkpoint in this folder; name the folder that was saved to, or the checkpoint's own"};
inline constexpr reason checkpoint_of_other_version{
    "tessera.checkpoint.version", "expected, found",
    "the checkpoint was written by another version of the library; load it with that one"};
inline constexpr reason checkpoint_entry_named{
    "tessera.checkpoint.entry", "",
    "entries of a checkpoint have names of their own without a slash, and one of them a team; name each thing once"};
inline constexpr reason checkpoint_folder_not_shared{
    "tessera.checkpoint.folder", "",
    "workers see different folders under this path; name a folder that all of them share"};
inline constexpr reason optimizer_not_kept{
    "tessera.checkpoint.optimizer", "",
    "states of SGD, Adam, AdamW, RMSprop and Adagrad are kept, no others; step by one of these, or keep its state by "
    "state() and load_state()"};
inline constexpr reason optimizer_of_other_leaves{
    "tessera.checkpoint.leaves", "",
    "the optimizer steps what no network of the checkpoint has; name its network as an entry too"};
inline constexpr reason path_without_row{
    "tessera.paths.nothing", "",
    "a row of the table fits no layer, or a layer that needs a row has none; correct the patterns, in which * is one "
    "part of a path"};
inline constexpr reason path_in_two_rows{"tessera.paths.twice", "",
                                         "two rows of the table fit one layer; let one of them leave it out"};
inline constexpr reason path_value_wrong{
    "tessera.paths.value", "",
    "a row says what its layer cannot be: no tensor of it has that dimension, or there is no such part; correct it"};
inline constexpr reason serial_view_wrong{"tessera.network.serial", "",
                                          "the parts of a serial tensor overlap, leave a gap, or disagree about its "
                                          "shape; correct the serial views in the layers' plans"};
inline constexpr reason nothing_renamed{
    "tessera.network.renamed", "",
    "the table of renamed keys names what is not there, or gives two tensors one key; name each key that differs once"};
inline constexpr reason norm_of_no_order{
    "tessera.gradient.clip", "",
    "gradients are clipped to a norm from 0 on, of a positive or infinite order; correct them"};
inline constexpr reason norm_not_finite{
    "tessera.gradient.finite", "",
    "the norm of the gradients is no finite number; look for what overflowed, or clip without asking"};
inline constexpr reason value_not_finite{
    "tessera.watch.finite", "",
    "a result, a gradient or a parameter is no finite number; look at what it is computed of, or take smaller steps"};
inline constexpr reason metric_name{"tessera.watch.metric", "",
                                    "a metric has a name that stands on one line, and is said once in a row; name it "
                                    "otherwise"};
inline constexpr reason no_metrics_file{
    "tessera.watch.file", "", "the file that is there is no table of metrics; name another folder, or move it away"};
inline constexpr reason network_made_otherwise{"tessera.network.arguments", "",
                                               "a network is made of its team and a seed, or of a part of another one; "
                                               "write net{team, seed{7}}, or net{whole.at(path)}"};
inline constexpr reason network_moved_from{"tessera.network.moved", "",
                                           "the network was moved from; use the one that it was moved to"};
inline constexpr reason network_copied{
    "tessera.network.copy", "",
    "a network moves and does not copy, since two would step the same weights; move it, or write clone()"};
inline constexpr reason parameter_named_twice{"tessera.network.keys", "",
                                              "two parameters have one key; give each part a name of its own, each "
                                              "network of yours a path, as in seed{7}.at(name)"};

inline constexpr reason on_no_stage{
    "tessera.pipeline.place", "axis, node",
    "a node of a pipeline lies on several stages or takes tensors of others; let each tensor lie on one coordinate of "
    "the axis, and move it by `to` or `repartition` where the next stage begins"};
inline constexpr reason stage_goes_back{
    "tessera.pipeline.backwards", "stage, node, chunks",
    "a network goes back to a stage that has no chunk left; give the schedule as many chunks as the network passes its "
    "stages"};
inline constexpr reason stage_without_nodes{"tessera.pipeline.idle", "stage, chunk",
                                            "a stage or a chunk of it has no node; take fewer of them"};
inline constexpr reason no_stage_axis{"tessera.pipeline.axis", "stages, extent of the axis",
                                      "the axis of a pipeline is one of the mesh, with as many coordinates as the "
                                      "schedule has stages; name another one, or make another schedule"};
inline constexpr reason recomputed_over_stages{"tessera.pipeline.recompute", "stage",
                                               "what is recomputed together lies on several stages; recompute the "
                                               "parts of each stage by themselves"};
inline constexpr reason pipeline_has_no_loss{"tessera.pipeline.loss", "dimensions",
                                             "a pipeline trains by its first output, a number that has a gradient; "
                                             "let the loss come first, or run it forward alone"};
inline constexpr reason micro_batch_lies_otherwise{
    "tessera.pipeline.rows", "input, micro-batch",
    "the rows of a micro-batch on each worker are no part of the batch by its own rule; cut the first dimension in "
    "blocks, or say that this input is not cut into micro-batches"};
inline constexpr reason own_forward_gave{"tessera.pipeline.own", "tensors, wanted",
                                         "a forward of one's own takes and gives a tensor for each that comes to its "
                                         "part and leaves it; hand over as many"};
inline constexpr reason pipeline_steps{
    "tessera.pipeline.steps", "steps in the schedule, functions for them",
    "steps of a schedule and the function for them go together; give options.step to a schedule with steps alone"};
inline constexpr reason pipeline_failed{"tessera.pipeline.failed", "stage, micro-batch",
                                        "a stage of a pipeline threw an exception; look at what it says"};

}  // namespace tessera::code
