#pragma once

#include <tessera/meta/verdict.hpp>
#include <tessera/nn/refusals.hpp>

// Made by scripts/make_verdicts from nn/refusals.hpp; a test holds the two against each other.

namespace tessera {

namespace with {

template <index_t> struct asked;
template <index_t> struct batch;
template <index_t> struct chunk;
template <index_t> struct chunks;
template <index_t> struct dimensions;
template <index_t> struct end;
template <index_t> struct expected;
template <index_t> struct extent_of_the_axis;
template <index_t> struct found;
template <index_t> struct functions_for_them;
template <index_t> struct has;
template <index_t> struct input;
template <index_t> struct micro_batch;
template <index_t> struct needed;
template <index_t> struct node;
template <index_t> struct other_worker;
template <index_t> struct rows;
template <index_t> struct samples;
template <index_t> struct says;
template <index_t> struct stage;
template <index_t> struct stages;
template <index_t> struct steps_in_the_schedule;
template <index_t> struct tensors;
template <index_t> struct wanted;
template <index_t> struct worker;

}  // namespace with

namespace verdicts {

template <class... Told> struct not_a_maximum {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.indices] only a maximum lies somewhere; ask a max_pool for indices");
  }
};
template <class... Told> struct gate_no_number {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.route.gate] the scores of some rows make gates that are no numbers; look at what they "
                  "are computed of");
  }
};
template <class... Told> struct shared_differ {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.network.shared] what is shared has parameters of different shapes, elements or layouts; "
                  "make them alike, or give it a name and parameters of its own");
  }
};
template <class... Told> struct shared_rewritten {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.network.rewritten] a layer changes a weight in place that layers of several stages "
                  "share; leave out max_norm, or give the layers of one of the stages a weight of their own");
  }
};
template <class... Told> struct parameter_changed {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.parameter.changed] a parameter was stepped between a forward and its backward, which "
                  "gathers it or computes with it again, or the gradient of one that is held was reduced there; step "
                  "and reduce behind backward");
  }
};
template <class... Told> struct gradient_not_reduced {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.gradient.unreduced] gradients of a parameter that is held wait to be reduced; call "
                  "nn::reduce_gradients(net) behind the last backward, or let them go by zero_grad()");
  }
};
template <class... Told> struct modules_differ {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.data_parallel.module] workers have modules of other parameters or buffers, or of other "
                  "values; build the same module on all of them, or let the first worker's values be brought");
  }
};
template <class... Told> struct gradients_bundled_twice {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.data_parallel.twice] the gradients of this parameter are averaged already; make one "
                  "data_parallel of a module, and let it live as long as the training");
  }
};
template <class... Told> struct gradient_is_sparse {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.data_parallel.sparse] a sparse gradient has no range of a bundle; make the embedding's "
                  "dense");
  }
};
template <class... Told> struct gradient_has_graph {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.data_parallel.graph] a gradient that is averaged inside backward has no gradient of its "
                  "own; call backward without create_graph");
  }
};
template <class... Told> struct stepped_inside_window {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.data_parallel.window] a parameter was stepped before its gradients were averaged; say "
                  "window(true) for the last backward before a step");
  }
};
template <class... Told> struct parameters_changed {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.data_parallel.parameters] the module has other parameters than when it was made data "
                  "parallel; make another data_parallel of it");
  }
};
template <class... Told> struct two_windows {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.data_parallel.windows] a window is open already; let it end before the next one");
  }
};
template <class... Told> struct weight_below_zero {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.data_parallel.weight] a weight is zero or more, as a number of samples is");
  }
};
template <class... Told> struct step_not_gathered {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.shards.gather] blocks were stepped, and the parameters are what they were before; call "
                  "gather() behind each step");
  }
};
template <class... Told> struct gradient_is_divided {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.shards.gradient] the gradient of this parameter is divided over workers; let the "
                  "optimizer step parameters() of the shards, and give no gradient by hand");
  }
};
template <class... Told> struct divided_twice {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.shards.twice] somebody sums the gradients of this parameter already; make one "
                  "bundle_shards or data_parallel of it");
  }
};
template <class... Told> struct nothing_divided {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.shards.none] there is no parameter that asks for a gradient; give one or more");
  }
};
template <class... Told> struct no_such_stage {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.shards.stage] flat shards are those of stages 1 and 2; for 3 write the network as a "
                  "type, by sharded_over");
  }
};
template <class... Told> struct decay_out_of_range {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.average.decay] a decay is a number from 0 to 1; correct it");
  }
};
template <class... Told> struct averages_swapped_in {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.average.swapped] the averages stand in the network's place already; let what "
                  "swapped_in() gave go first");
  }
};
template <class... Told> struct average_trained {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.average.stepped] the network was trained while its averages stood in its place, and that "
                  "is lost; let what swapped_in() gave go before a backward, a step or zero_grad()");
  }
};
template <class... Told> struct scaling_out_of_range {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.scaler.options] a loss scale is a finite number from 1 on, growth from 1 on, backoff "
                  "above 0 and at most 1, the interval a number of steps; correct them");
  }
};
template <class... Told> struct loss_without_fractions {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.scaler.loss] a loss that is scaled has a gradient; make it one of real numbers with "
                  "fractions");
  }
};
template <class... Told> struct unscaled_twice {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.scaler.twice] these gradients were unscaled already; step once behind each backward of a "
                  "scaled loss, before the next one, and clip either in unscale or in the step");
  }
};
template <class... Told> struct half_unscaled {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.scaler.half] a gradient of float16 loses by unscaling what the scale kept; store the "
                  "parameter in float, by weights_as or the masters of bundle_shards");
  }
};
template <class... Told> struct scaled_leaves_differ {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.scaler.leaves] the optimizer steps parameters that are not judged here, whose gradients "
                  "keep the scale; name the network or the shards that have them, or step several optimizers by a "
                  "function");
  }
};
template <class... Told> struct other_numbers {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.training.state] these are not the numbers that state() of this object gives; load those");
  }
};
template <class... Told> struct loader_options_wrong {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.loader.options] a step takes one sample or more and a loader reads none or more batches "
                  "ahead; name the axes that cut a batch where no tensor type says it, and there alone");
  }
};
template <class... Told> struct dataset_without_size {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.loader.size] the data set does not say how many samples it has, so that none has a "
                  "number; let its size() say it");
  }
};
template <class... Told> struct epoch_without_steps {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.loader.empty] an epoch has no step; give more samples, or make the batch smaller");
  }
};
template <class... Told> struct sample_not_read {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.loader.read] samples cannot be read; look at what the data set says of them");
  }
};
template <class... Told> struct samples_differ {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.loader.shape] two workers read samples of other extents or elements, which make no "
                  "batch; give all samples the same ones");
  }
};
template <class... Told> struct no_such_step {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.loader.step] there is no such epoch, step or sample; count from 0, below steps() or "
                  "samples()");
  }
};
template <class... Told> struct other_dataset {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.loader.samples] the loader's state is that of a data set with another number of samples; "
                  "load it where that one is read");
  }
};
template <class... Told> struct loader_state_wrong {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.loader.state] this is no state of a loader, or it was altered; load what state() of a "
                  "loader gave");
  }
};
template <class... Told> struct no_such_tokens {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tokens.sample] tokens are uint16, uint32, int32 or int64, and samples have one or more "
                  "and begin one or more apart; correct the options of the token file");
  }
};
template <class... Told> struct too_few_tokens {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tokens.few] the file has no sample of so many tokens with one behind it; name a longer "
                  "file, or make samples shorter");
  }
};
template <class... Told> struct parameter_not_shared {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.network.part] the network has nothing under this key that another could share; name the "
                  "part's path as the keys of the state dict do, at(path)");
  }
};
template <class... Told> struct flow_of_another_program {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.network.flow] a flow of another program comes in; let flows of one program meet");
  }
};
template <class... Told> struct program_without_output {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.network.output] the program has no output; name what it gives by output(flow)");
  }
};
template <class... Told> struct program_layer_unknown {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.program.layer] the file names a layer or a function that there is not; correct it, or "
                  "add it to the table of layers");
  }
};
template <class... Told> struct program_value_unknown {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.program.value] the file names a value that no input and no node gives; correct the name, "
                  "or add what gives it");
  }
};
template <class... Told> struct program_cycle {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.program.cycle] the nodes of the file wait for one another in a circle; let one of them "
                  "read something else");
  }
};
template <class... Told> struct layer_threw {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.network.layer] a layer threw an exception; look at what it says");
  }
};
template <class... Told> struct other_results {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.network.results] a layer that is a value has as many results as its type says; write "
                  "static constexpr int results in it");
  }
};
template <class... Told> struct file_missing {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.file.missing] the file cannot be read; look at its path and at the reason");
  }
};
template <class... Told> struct file_not_written {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.file.write] the file cannot be written; look at its path and at the reason");
  }
};
template <class... Told> struct disk_full {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.file.space] there is no room for the file; free some, or save it elsewhere");
  }
};
template <class... Told> struct not_a_file {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.file.kind] this is no regular file; name one, not a folder or a device");
  }
};
template <class... Told> struct file_truncated {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.file.truncated] the file ends too early; write or copy it again");
  }
};
template <class... Told> struct file_altered {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.file.altered] the file's contents do not fit its checksum or its header; write or copy "
                  "it again");
  }
};
template <class... Told> struct file_not_ours {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.file.format] the file is in no safetensors format; name another");
  }
};
template <class... Told> struct file_of_other_elements {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.file.element] the file holds elements that no tensor here has; convert them where it was "
                  "written");
  }
};
template <class... Told> struct other_parameters {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.network.parameters] these are other parameters than the network's; load those that the "
                  "same network saved");
  }
};
template <class... Told> struct checkpoint_missing {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.checkpoint.missing] there is no whole checkpoint in this folder; name the folder that "
                  "was saved to, or the checkpoint's own");
  }
};
template <class... Told> struct checkpoint_of_other_version {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.checkpoint.version] the checkpoint was written by another version of the library; load "
                  "it with that one");
  }
};
template <class... Told> struct checkpoint_entry_named {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.checkpoint.entry] entries of a checkpoint have names of their own without a slash, and "
                  "one of them a team; name each thing once");
  }
};
template <class... Told> struct checkpoint_folder_not_shared {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.checkpoint.folder] workers see different folders under this path; name a folder that all "
                  "of them share");
  }
};
template <class... Told> struct optimizer_not_kept {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.checkpoint.optimizer] states of SGD, Adam, AdamW, RMSprop and Adagrad are kept, no "
                  "others; step by one of these, or keep its state by state() and load_state()");
  }
};
template <class... Told> struct optimizer_of_other_leaves {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.checkpoint.leaves] the optimizer steps what no network of the checkpoint has; name its "
                  "network as an entry too");
  }
};
template <class... Told> struct path_without_row {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.paths.nothing] a row of the table fits no layer, or a layer that needs a row has none; "
                  "correct the patterns, in which * is one part of a path");
  }
};
template <class... Told> struct path_in_two_rows {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.paths.twice] two rows of the table fit one layer; let one of them leave it out");
  }
};
template <class... Told> struct path_value_wrong {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.paths.value] a row says what its layer cannot be: no tensor of it has that dimension, or "
                  "there is no such part; correct it");
  }
};
template <class... Told> struct serial_view_wrong {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.network.serial] the parts of a serial tensor overlap, leave a gap, or disagree about its "
                  "shape; correct the serial views in the layers' plans");
  }
};
template <class... Told> struct nothing_renamed {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.network.renamed] the table of renamed keys names what is not there, or gives two tensors "
                  "one key; name each key that differs once");
  }
};
template <class... Told> struct norm_of_no_order {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.gradient.clip] gradients are clipped to a norm from 0 on, of a positive or infinite "
                  "order; correct them");
  }
};
template <class... Told> struct norm_not_finite {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.gradient.finite] the norm of the gradients is no finite number; look for what "
                  "overflowed, or clip without asking");
  }
};
template <class... Told> struct value_not_finite {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.watch.finite] a result, a gradient or a parameter is no finite number; look at what it "
                  "is computed of, or take smaller steps");
  }
};
template <class... Told> struct metric_name {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.watch.metric] a metric has a name that stands on one line, and is said once in a row; "
                  "name it otherwise");
  }
};
template <class... Told> struct no_metrics_file {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.watch.file] the file that is there is no table of metrics; name another folder, or move "
                  "it away");
  }
};
template <class... Told> struct network_made_otherwise {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.network.arguments] a network is made of its team and a seed, or of a part of another "
                  "one; write net{team, seed{7}}, or net{whole.at(path)}");
  }
};
template <class... Told> struct network_moved_from {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.network.moved] the network was moved from; use the one that it was moved to");
  }
};
template <class... Told> struct network_copied {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.network.copy] a network moves and does not copy, since two would step the same weights; "
                  "move it, or write clone()");
  }
};
template <class... Told> struct parameter_named_twice {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.network.keys] two parameters have one key; give each part a name of its own, each "
                  "network of yours a path, as in seed{7}.at(name)");
  }
};
template <class... Told> struct on_no_stage {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.pipeline.place] a node of a pipeline lies on several stages or takes tensors of others; "
                  "let each tensor lie on one coordinate of the axis, and move it by `to` or `repartition` where the "
                  "next stage begins");
  }
};
template <class... Told> struct stage_goes_back {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.pipeline.backwards] a network goes back to a stage that has no chunk left; give the "
                  "schedule as many chunks as the network passes its stages");
  }
};
template <class... Told> struct stage_without_nodes {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.pipeline.idle] a stage or a chunk of it has no node; take fewer of them");
  }
};
template <class... Told> struct no_stage_axis {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.pipeline.axis] the axis of a pipeline is one of the mesh, with as many coordinates as "
                  "the schedule has stages; name another one, or make another schedule");
  }
};
template <class... Told> struct recomputed_over_stages {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.pipeline.recompute] what is recomputed together lies on several stages; recompute the "
                  "parts of each stage by themselves");
  }
};
template <class... Told> struct pipeline_has_no_loss {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.pipeline.loss] a pipeline trains by its first output, a number that has a gradient; let "
                  "the loss come first, or run it forward alone");
  }
};
template <class... Told> struct micro_batch_lies_otherwise {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.pipeline.rows] the rows of a micro-batch on each worker are no part of the batch by its "
                  "own rule; cut the first dimension in blocks, or say that this input is not cut into micro-batches");
  }
};
template <class... Told> struct own_forward_gave {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.pipeline.own] a forward of one's own takes and gives a tensor for each that comes to its "
                  "part and leaves it; hand over as many");
  }
};
template <class... Told> struct pipeline_steps {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.pipeline.steps] steps of a schedule and the function for them go together; give "
                  "options.step to a schedule with steps alone");
  }
};
template <class... Told> struct pipeline_failed {
  static constexpr bool ok = false;
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.pipeline.failed] a stage of a pipeline threw an exception; look at what it says");
  }
};

}  // namespace verdicts

namespace detail {

template <> struct verdict_for<&code::not_a_maximum> { template <class Why> using type = verdicts::not_a_maximum<>; };
template <> struct verdict_for<&code::gate_no_number> {
  template <class Why> using type = verdicts::gate_no_number<with::rows<Why::number(0)>>;
};
template <> struct verdict_for<&code::shared_differ> { template <class Why> using type = verdicts::shared_differ<>; };
template <> struct verdict_for<&code::shared_rewritten> {
  template <class Why> using type = verdicts::shared_rewritten<>;
};
template <> struct verdict_for<&code::parameter_changed> {
  template <class Why> using type = verdicts::parameter_changed<>;
};
template <> struct verdict_for<&code::gradient_not_reduced> {
  template <class Why> using type = verdicts::gradient_not_reduced<>;
};
template <> struct verdict_for<&code::modules_differ> { template <class Why> using type = verdicts::modules_differ<>; };
template <> struct verdict_for<&code::gradients_bundled_twice> {
  template <class Why> using type = verdicts::gradients_bundled_twice<>;
};
template <> struct verdict_for<&code::gradient_is_sparse> {
  template <class Why> using type = verdicts::gradient_is_sparse<>;
};
template <> struct verdict_for<&code::gradient_has_graph> {
  template <class Why> using type = verdicts::gradient_has_graph<>;
};
template <> struct verdict_for<&code::stepped_inside_window> {
  template <class Why> using type = verdicts::stepped_inside_window<>;
};
template <> struct verdict_for<&code::parameters_changed> {
  template <class Why> using type = verdicts::parameters_changed<
      with::expected<Why::number(0)>,
      with::found<Why::number(1)>>;
};
template <> struct verdict_for<&code::two_windows> { template <class Why> using type = verdicts::two_windows<>; };
template <> struct verdict_for<&code::weight_below_zero> {
  template <class Why> using type = verdicts::weight_below_zero<>;
};
template <> struct verdict_for<&code::step_not_gathered> {
  template <class Why> using type = verdicts::step_not_gathered<>;
};
template <> struct verdict_for<&code::gradient_is_divided> {
  template <class Why> using type = verdicts::gradient_is_divided<>;
};
template <> struct verdict_for<&code::divided_twice> { template <class Why> using type = verdicts::divided_twice<>; };
template <> struct verdict_for<&code::nothing_divided> {
  template <class Why> using type = verdicts::nothing_divided<>;
};
template <> struct verdict_for<&code::no_such_stage> {
  template <class Why> using type = verdicts::no_such_stage<with::stage<Why::number(0)>>;
};
template <> struct verdict_for<&code::decay_out_of_range> {
  template <class Why> using type = verdicts::decay_out_of_range<>;
};
template <> struct verdict_for<&code::averages_swapped_in> {
  template <class Why> using type = verdicts::averages_swapped_in<>;
};
template <> struct verdict_for<&code::average_trained> {
  template <class Why> using type = verdicts::average_trained<>;
};
template <> struct verdict_for<&code::scaling_out_of_range> {
  template <class Why> using type = verdicts::scaling_out_of_range<>;
};
template <> struct verdict_for<&code::loss_without_fractions> {
  template <class Why> using type = verdicts::loss_without_fractions<>;
};
template <> struct verdict_for<&code::unscaled_twice> { template <class Why> using type = verdicts::unscaled_twice<>; };
template <> struct verdict_for<&code::half_unscaled> { template <class Why> using type = verdicts::half_unscaled<>; };
template <> struct verdict_for<&code::scaled_leaves_differ> {
  template <class Why> using type = verdicts::scaled_leaves_differ<>;
};
template <> struct verdict_for<&code::other_numbers> { template <class Why> using type = verdicts::other_numbers<>; };
template <> struct verdict_for<&code::loader_options_wrong> {
  template <class Why> using type = verdicts::loader_options_wrong<>;
};
template <> struct verdict_for<&code::dataset_without_size> {
  template <class Why> using type = verdicts::dataset_without_size<>;
};
template <> struct verdict_for<&code::epoch_without_steps> {
  template <class Why> using type = verdicts::epoch_without_steps<
      with::samples<Why::number(0)>,
      with::batch<Why::number(1)>>;
};
template <> struct verdict_for<&code::sample_not_read> {
  template <class Why> using type = verdicts::sample_not_read<>;
};
template <> struct verdict_for<&code::samples_differ> {
  template <class Why> using type = verdicts::samples_differ<
      with::worker<Why::number(0)>,
      with::other_worker<Why::number(1)>>;
};
template <> struct verdict_for<&code::no_such_step> {
  template <class Why> using type = verdicts::no_such_step<with::asked<Why::number(0)>, with::end<Why::number(1)>>;
};
template <> struct verdict_for<&code::other_dataset> {
  template <class Why> using type = verdicts::other_dataset<
      with::expected<Why::number(0)>,
      with::found<Why::number(1)>>;
};
template <> struct verdict_for<&code::loader_state_wrong> {
  template <class Why> using type = verdicts::loader_state_wrong<>;
};
template <> struct verdict_for<&code::no_such_tokens> { template <class Why> using type = verdicts::no_such_tokens<>; };
template <> struct verdict_for<&code::too_few_tokens> {
  template <class Why> using type = verdicts::too_few_tokens<with::needed<Why::number(0)>, with::found<Why::number(1)>>;
};
template <> struct verdict_for<&code::parameter_not_shared> {
  template <class Why> using type = verdicts::parameter_not_shared<>;
};
template <> struct verdict_for<&code::flow_of_another_program> {
  template <class Why> using type = verdicts::flow_of_another_program<>;
};
template <> struct verdict_for<&code::program_without_output> {
  template <class Why> using type = verdicts::program_without_output<>;
};
template <> struct verdict_for<&code::program_layer_unknown> {
  template <class Why> using type = verdicts::program_layer_unknown<>;
};
template <> struct verdict_for<&code::program_value_unknown> {
  template <class Why> using type = verdicts::program_value_unknown<>;
};
template <> struct verdict_for<&code::program_cycle> { template <class Why> using type = verdicts::program_cycle<>; };
template <> struct verdict_for<&code::layer_threw> { template <class Why> using type = verdicts::layer_threw<>; };
template <> struct verdict_for<&code::other_results> {
  template <class Why> using type = verdicts::other_results<with::has<Why::number(0)>, with::says<Why::number(1)>>;
};
template <> struct verdict_for<&code::file_missing> { template <class Why> using type = verdicts::file_missing<>; };
template <> struct verdict_for<&code::file_not_written> {
  template <class Why> using type = verdicts::file_not_written<>;
};
template <> struct verdict_for<&code::disk_full> { template <class Why> using type = verdicts::disk_full<>; };
template <> struct verdict_for<&code::not_a_file> { template <class Why> using type = verdicts::not_a_file<>; };
template <> struct verdict_for<&code::file_truncated> {
  template <class Why> using type = verdicts::file_truncated<
      with::expected<Why::number(0)>,
      with::found<Why::number(1)>>;
};
template <> struct verdict_for<&code::file_altered> { template <class Why> using type = verdicts::file_altered<>; };
template <> struct verdict_for<&code::file_not_ours> { template <class Why> using type = verdicts::file_not_ours<>; };
template <> struct verdict_for<&code::file_of_other_elements> {
  template <class Why> using type = verdicts::file_of_other_elements<>;
};
template <> struct verdict_for<&code::other_parameters> {
  template <class Why> using type = verdicts::other_parameters<
      with::expected<Why::number(0)>,
      with::found<Why::number(1)>>;
};
template <> struct verdict_for<&code::checkpoint_missing> {
  template <class Why> using type = verdicts::checkpoint_missing<>;
};
template <> struct verdict_for<&code::checkpoint_of_other_version> {
  template <class Why> using type = verdicts::checkpoint_of_other_version<
      with::expected<Why::number(0)>,
      with::found<Why::number(1)>>;
};
template <> struct verdict_for<&code::checkpoint_entry_named> {
  template <class Why> using type = verdicts::checkpoint_entry_named<>;
};
template <> struct verdict_for<&code::checkpoint_folder_not_shared> {
  template <class Why> using type = verdicts::checkpoint_folder_not_shared<>;
};
template <> struct verdict_for<&code::optimizer_not_kept> {
  template <class Why> using type = verdicts::optimizer_not_kept<>;
};
template <> struct verdict_for<&code::optimizer_of_other_leaves> {
  template <class Why> using type = verdicts::optimizer_of_other_leaves<>;
};
template <> struct verdict_for<&code::path_without_row> {
  template <class Why> using type = verdicts::path_without_row<>;
};
template <> struct verdict_for<&code::path_in_two_rows> {
  template <class Why> using type = verdicts::path_in_two_rows<>;
};
template <> struct verdict_for<&code::path_value_wrong> {
  template <class Why> using type = verdicts::path_value_wrong<>;
};
template <> struct verdict_for<&code::serial_view_wrong> {
  template <class Why> using type = verdicts::serial_view_wrong<>;
};
template <> struct verdict_for<&code::nothing_renamed> {
  template <class Why> using type = verdicts::nothing_renamed<>;
};
template <> struct verdict_for<&code::norm_of_no_order> {
  template <class Why> using type = verdicts::norm_of_no_order<>;
};
template <> struct verdict_for<&code::norm_not_finite> {
  template <class Why> using type = verdicts::norm_not_finite<>;
};
template <> struct verdict_for<&code::value_not_finite> {
  template <class Why> using type = verdicts::value_not_finite<>;
};
template <> struct verdict_for<&code::metric_name> { template <class Why> using type = verdicts::metric_name<>; };
template <> struct verdict_for<&code::no_metrics_file> {
  template <class Why> using type = verdicts::no_metrics_file<>;
};
template <> struct verdict_for<&code::network_made_otherwise> {
  template <class Why> using type = verdicts::network_made_otherwise<>;
};
template <> struct verdict_for<&code::network_moved_from> {
  template <class Why> using type = verdicts::network_moved_from<>;
};
template <> struct verdict_for<&code::network_copied> { template <class Why> using type = verdicts::network_copied<>; };
template <> struct verdict_for<&code::parameter_named_twice> {
  template <class Why> using type = verdicts::parameter_named_twice<>;
};
template <> struct verdict_for<&code::on_no_stage> {
  template <class Why> using type = verdicts::on_no_stage<
      typename axis_of_refusal<Why>::type,
      with::node<Why::number(0)>>;
};
template <> struct verdict_for<&code::stage_goes_back> {
  template <class Why> using type = verdicts::stage_goes_back<
      with::stage<Why::number(0)>,
      with::node<Why::number(1)>,
      with::chunks<Why::number(2)>>;
};
template <> struct verdict_for<&code::stage_without_nodes> {
  template <class Why> using type = verdicts::stage_without_nodes<
      with::stage<Why::number(0)>,
      with::chunk<Why::number(1)>>;
};
template <> struct verdict_for<&code::no_stage_axis> {
  template <class Why> using type = verdicts::no_stage_axis<
      with::stages<Why::number(0)>,
      with::extent_of_the_axis<Why::number(1)>>;
};
template <> struct verdict_for<&code::recomputed_over_stages> {
  template <class Why> using type = verdicts::recomputed_over_stages<with::stage<Why::number(0)>>;
};
template <> struct verdict_for<&code::pipeline_has_no_loss> {
  template <class Why> using type = verdicts::pipeline_has_no_loss<with::dimensions<Why::number(0)>>;
};
template <> struct verdict_for<&code::micro_batch_lies_otherwise> {
  template <class Why> using type = verdicts::micro_batch_lies_otherwise<
      with::input<Why::number(0)>,
      with::micro_batch<Why::number(1)>>;
};
template <> struct verdict_for<&code::own_forward_gave> {
  template <class Why> using type = verdicts::own_forward_gave<
      with::tensors<Why::number(0)>,
      with::wanted<Why::number(1)>>;
};
template <> struct verdict_for<&code::pipeline_steps> {
  template <class Why> using type = verdicts::pipeline_steps<
      with::steps_in_the_schedule<Why::number(0)>,
      with::functions_for_them<Why::number(1)>>;
};
template <> struct verdict_for<&code::pipeline_failed> {
  template <class Why> using type = verdicts::pipeline_failed<
      with::stage<Why::number(0)>,
      with::micro_batch<Why::number(1)>>;
};

}  // namespace detail
}  // namespace tessera
