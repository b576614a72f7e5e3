#pragma once

// Every refusal of the library: the name of its verdict type, its code, the sentence (what is wrong; what to do) and the
// names of the numbers that it carries. docs/refusals.md explains each; a test holds the two lists against each other.
#define TESSERA_REFUSALS(R)                                                                                             \
  R(wrong_kind, "tessera.argument.kind",                                                                                \
    "a template takes another kind of type here; give it the one that the verdict wants, in place of the one it was given", "of, place, wanted, given") \
  R(wrong_number_of_dimensions, "tessera.partition.dimensions",                                                         \
    "a partition needs one cover for each dimension of the shape; add or remove covers", "covers, dimensions")          \
  R(axis_not_in_mesh, "tessera.partition.axis",                                                                         \
    "the partition names an axis that its mesh does not have; name it in the mesh or leave it out", "axis, mesh axes")  \
  R(axis_used_twice, "tessera.partition.twice",                                                                         \
    "an axis of the mesh may cut one dimension or have one meaning, not both or two; drop one use", "axis")             \
  R(axes_of_one_name, "tessera.partition.name",                                                                         \
    "two axes of one name have different extents; rename one of them", "axis, extent in the mesh, extent of the other") \
  R(too_many, "tessera.layout.size", "a layout has at most 16 axes and 16 dimensions; merge some", "axes, dimensions")  \
  R(extent_not_positive, "tessera.mesh.extent", "an axis needs an extent of at least 1; give one", "axis, extent")      \
  R(mesh_too_large, "tessera.mesh.size",                                                                                \
    "a mesh has at most 2^31 - 1 workers; make its axes shorter", "axis, extent")                                       \
  R(rank_outside, "tessera.mesh.rank",                                                                                  \
    "the ranks of workers go from 0 to 2^31 - 1; place the mesh among them", "lowest, highest")                         \
  R(placement_overlaps, "tessera.mesh.placement",                                                                       \
    "two coordinates of the mesh sit on one worker; choose strides that keep them apart", "workers")                    \
  R(axis_named_twice, "tessera.mesh.twice", "a mesh names each axis once; drop one or derive another axis",              \
    "axis, axis again")                                                                                                 \
  R(wrong_number_of_strides, "tessera.mesh.strides",                                                                    \
    "a placement names one stride for each axis; add or remove strides", "axes, strides")                               \
  R(wrong_number_of_ranks, "tessera.mesh.ranks", "a mesh on a list of ranks names one for each worker; add or remove ranks", \
    "workers, ranks")                                                                                                   \
  R(coordinate_outside_axis, "tessera.mesh.coordinate",                                                                 \
    "the coordinate lies outside the axis; name one from 0 to extent - 1", "axis, extent, coordinate")                  \
  R(grain_not_positive, "tessera.partition.grain", "a grain holds at least 1 element; write a larger one",              \
    "dimension, grain")                                                                                                 \
  R(wrong_number_of_lengths, "tessera.lengths.count",                                                                   \
    "a cover names one length for each coordinate that cuts it; add or remove lengths", "dimension, parts, lengths")    \
  R(lengths_do_not_add_up, "tessera.lengths.sum",                                                                       \
    "the lengths of the parts do not add up to the extent; correct one of them", "dimension, extent, sum")              \
  R(lengths_not_known, "tessera.lengths.unknown",                                                                       \
    "learned lengths are known of adopted tensors alone, along the axes they were learned on; adopt the boxes, or name the lengths", "dimension")                    \
  R(boxes_are_no_product, "tessera.adopt.product",                                                                      \
    "the boxes that workers hand in are no product of lengths; workers of one part need the same length in its dimension", \
    "dimension, worker, length, other length")                                                                          \
  R(uneven_shift, "tessera.shift.uneven",                                                                               \
    "parts of different lengths cannot take each other's place; turn the deal instead, with rotated<...>", "dimension, parts") \
  R(shift_inside, "tessera.shift.axis",                                                                                 \
    "only the outermost axis that cuts a dimension turns it; name that axis", "axis")                                    \
  R(mixed_combines, "tessera.partial.combine",                                                                          \
    "the terms of one tensor combine in one way, since a maximum of sums is no sum of maxima; all_reduce one axis first", \
    "axis, other axis or dimension")                                                                                    \
  R(extent_negative, "tessera.shape.negative", "an extent is at least 0; write a larger one", "dimension, extent")      \
  R(extents_of_one_name, "tessera.shape.name",                                                                          \
    "two extents have one name, so they would be one; rename one of them, or name the same type twice", "dimension, other dimension") \
  R(extent_bound_twice, "tessera.shape.bound_twice",                                                                    \
    "an extent is bound once; drop one binding, or rename one of two extents of one name", "binding, other binding")    \
  R(ranks_differ, "tessera.shape.dimensions",                                                                           \
    "the two tensors have different numbers of dimensions; give both the same", "first, second")                        \
  R(extents_differ, "tessera.shape.extent",                                                                             \
    "the two tensors have different extents in this dimension; give both the same", "dimension, first, second")         \
  R(partitions_do_not_meet, "tessera.compose.partition",                                                                \
    "what the first map delivers is not what the second takes; put a repartition between them", "map")                  \
  R(not_a_tiling, "tessera.move.tiling",                                                                                \
    "a Move starts from a tiling: an axis that is partial, or a haloed dimension, must be folded first", "axis, dimension")  \
  R(not_this_verb, "tessera.verb.pair",                                                                        \
    "this verb does not lead from the first partition to the second; name the verb that does, or let `to` find it",    \
    "wanted verb, found verb")                                                                                          \
  R(meshes_differ, "tessera.rule.mesh", "the operands of a local operation live on different meshes; repartition one",  \
    "operand")                                                                                                          \
  R(nonlinear_on_partial, "tessera.rule.nonlinear",                                                                     \
    "only a linear operation acts on single terms, and only on those of a sum; all_reduce them first", "axis, operand")          \
  R(product_of_partials, "tessera.rule.product",                                                                        \
    "a product of two pending sums is not the sum of the products; all_reduce one of them first", "axis, operands")     \
  R(replicate_added_to_partial, "tessera.rule.sum",                                                                     \
    "a whole value added to each term would be counted once for each worker; change it to partial first",              \
    "axis, operand")                                                                                                    \
  R(invariant_mixed, "tessera.rule.invariant",                                                                          \
    "an invariant operand meets one that differs along this axis; change it to replicate (copy_in) first",              \
    "axis, operand")                                                                                                    \
  R(held_on_one_coordinate, "tessera.rule.on",                                                                          \
    "one operand is held on a single coordinate of this axis and another is not; broadcast it first", "axis, operand")  \
  R(cut_unalike, "tessera.rule.cut",                                                                                    \
    "the operands are cut differently along this axis; repartition one of them", "axis, operand, dimension")            \
  R(haloed_summed, "tessera.rule.haloed",                                                                               \
    "a haloed dimension holds some elements twice, so it must not be summed over; accumulate it to blocks first",       \
    "operand, dimension")                                                                                               \
  R(dimension_needed_whole, "tessera.rule.whole",                                                                       \
    "the operation needs this dimension whole, but it is cut; repartition it first", "operand, dimension")              \
  R(window_without_halo, "tessera.rule.window",                                                                         \
    "a windowed operation on a cut dimension needs the halo of its own window; halo_exchange it first",                 \
    "operand, dimension")                                                                                               \
  R(pending_not_linear, "tessera.rule.pending",                                                                         \
    "a pending dimension holds terms; accumulate it to blocks before anything but a linear operation",                  \
    "operand, dimension")                                                                                               \
  R(signature_unreadable, "tessera.signature.text",                                                                     \
    "a signature reads as in nk,mk->nm, a letter for each dimension, one arrow; correct it at this character",            \
    "character or -1")                                                                                                  \
  R(signature_too_large, "tessera.signature.size",                                                                      \
    "an operation has at most 4 operands of 16 dimensions each; merge some", "operands, dimensions")                    \
  R(letter_named_twice, "tessera.signature.twice",                                                                      \
    "an operand or the result names a dimension twice; give each a letter of its own", "operand, dimension")            \
  R(letter_from_nowhere, "tessera.signature.result",                                                                    \
    "the result names a dimension that no operand has and no role makes; name it in an operand", "dimension")           \
  R(role_does_not_fit, "tessera.signature.role",                                                                        \
    "this role does not fit its dimension; docs/adding-operations.md lists what each takes", "role")                           \
  R(wrong_number_of_operands, "tessera.signature.operands",                                                             \
    "the operation takes another number of operands; hand in as many as its signature names", "takes, is given")        \
  R(operand_of_other_dimensions, "tessera.signature.dimensions",                                                        \
    "the operation takes another number of dimensions of this operand; reshape it, or choose another operation", "operand, takes, is given") \
  R(range_outside, "tessera.signature.range",                                                                           \
    "the range leaves the dimension; narrow it to one inside", "dimension, extent, begin, end")                         \
  R(split_uneven, "tessera.signature.split",                                                                            \
    "the extent is no multiple of the inner extent; choose one that divides it", "dimension, extent, inner extent")     \
  R(kernel_wider_than_padded_tensor, "tessera.window.kernel",                                                           \
    "the kernel is wider than the padded tensor; make it smaller or the padding larger",                                \
    "dimension, extent, padding, kernel")                                                                               \
  R(window_not_positive, "tessera.window.positive",                                                                     \
    "kernel, stride and dilation are at least 1 and padding at least 0; correct the window",                            \
    "dimension, kernel, stride, dilation")                                                                              \
  R(window_too_large, "tessera.window.size",                                                                            \
    "kernel, stride, dilation and padding are less than 2^31; write smaller ones", "dimension, kernel, stride, dilation") \
  R(windows_do_not_compose, "tessera.window.compose",                                                                   \
    "these layers share no halo: windows compose where all see zeros beyond the edge or go around it; exchange one for each", "dimension, layer") \
  R(layer_has_no_window, "tessera.layer.one_halo",                                                                      \
    "only convolutions, poolings and elementwise layers share a halo; move this layer out of one_halo", "layer")        \
  R(reflection_too_wide, "tessera.window.reflect",                                                                      \
    "a reflection is narrower than the tensor; make the padding smaller or the boundary another one",                   \
    "dimension, extent, padding")                                                                                       \
  R(nothing_to_pad_from, "tessera.window.empty",                                                                        \
    "an empty dimension has no edge to continue; pad it with zeros or leave the padding out", "dimension, before, after") \
  R(padding_wider_than_half_kernel, "tessera.window.padding",                                                           \
    "a pooling window may lie by at most half in the padding; make the padding smaller", "dimension, padding, kernel")  \
  R(mean_of_integers, "tessera.layer.element",                                                                          \
    "a mean of integers is no integer; convert the tensor to a floating element first", "element")                      \
  R(not_a_maximum, "tessera.layer.indices",                                                                             \
    "only a maximum lies somewhere; ask a max_pool for indices", "")                                                    \
  R(groups_do_not_divide, "tessera.layer.groups",                                                                       \
    "the features are no multiple of the groups; choose groups that divide both", "in, out, groups")                     \
  R(layer_takes_other_dimensions, "tessera.layer.dimensions",                                                           \
    "the layer takes a tensor of another number of dimensions; flatten or reshape before it", "takes, is given")        \
  R(wrong_kernel, "tessera.layer.kernel",                                                                             \
    "the layer takes a kernel of 1 to 3 extents; name it, as in kernel<3, 3>", "extents")                               \
  R(dimension_not_there, "tessera.layer.dimension",                                                                     \
    "the input has no such dimension; name one from 0 on", "dimension, dimensions")                                     \
  R(divisor_not_positive, "tessera.layer.divisor",                                                                      \
    "the divisor of an average is at least 1; write a larger one", "divisor")                                           \
  R(extent_not_static, "tessera.layer.dynamic",                                                                         \
    "this extent decides the size of a parameter and must be static; write dim<n> in the shape", "dimension")           \
  R(extent_not_bound, "tessera.shape.unbound",                                                                          \
    "this needs an extent that is not known; bind it, as in bind<batch>(64)", "dimension")                                \
  R(not_an_option_of_linear, "tessera.linear.option",                                                                   \
    "linear takes cut_out, cut_in, output_as and no_bias; leave this option out",                                       \
    "option")                                                                                                           \
  R(not_an_option_of_conv, "tessera.conv.option",                                                                       \
    "conv takes kernel, stride, padding, padding_at, padding_mode, dilation, groups, cut_out, cut_in, output_as and no_bias; leave this option out", \
    "option")                                                                                                           \
  R(not_an_option_of_max_pool, "tessera.max_pool.option",                                                               \
    "max_pool takes kernel, stride, padding, padding_at, dilation and ceil_mode; leave this option out",                \
    "option")                                                                                                           \
  R(not_an_option_of_avg_pool, "tessera.avg_pool.option",                                                               \
    "avg_pool takes kernel, stride, padding, padding_at, dilation, ceil_mode, exclude_padding and divisor; leave this option out", \
    "option")                                                                                                           \
  R(not_an_option_of_pad, "tessera.pad.option",                                                                         \
    "pad takes padding_mode behind its widths; leave this option out",                                                  \
    "option")                                                                                                           \
  R(option_given_twice, "tessera.layer.twice",                                                                          \
    "two options of the layer speak of the same thing, as padding and padding_at do; drop one",                         \
    "option, option again")                                                                                             \
  R(option_of_other_dimensions, "tessera.layer.options",                                                                \
    "an option of the layer names another number of dimensions than its kernel; name one value for all or one each",    \
    "kernel, option")                                                                                                   \
  R(count_overflows, "tessera.shape.overflow", "the tensor has more than 2^63 - 1 elements; make it smaller",           \
    "dimension, extent")                                                                                                \
  R(cost_overflows, "tessera.cost.overflow",                                                                            \
    "more elements or bytes move than can be counted, 2^63 - 1; make the tensor or the mesh smaller", "")               \
  R(list_full, "tessera.list.full",                                                                                     \
    "a list of fixed length is full (axes, dimensions, operands, parameters, windows); name fewer", "most")             \
  R(not_a_scalar, "tessera.tensor.scalar", "only a scalar starts backward or steers the program; sum the tensor first",  \
    "dimensions")                                                                                                       \
  R(not_steering, "tessera.value.copies",                                                                               \
    "only a tensor that all workers hold alike may steer the program; change it to invariant first", "axis")            \
  R(holds_nothing, "tessera.value.outside",                                                                             \
    "this worker lies outside the tensor's mesh and has no value of it; ask on a worker that does, or broadcast it first", \
    "worker")                                                                                                           \
  R(mesh_larger_than_world, "tessera.launch.world",                                                                     \
    "the mesh does not fit the workers that were started; start as many as it names, or choose another mesh",           \
    "mesh, world")                                                                                                      \
  R(limit_not_positive, "tessera.launch.limit", "the time limit is no time at all; give at least a second", "seconds")  \
  R(threads_missing, "tessera.launch.threads",                                                                          \
    "the system gives no thread to every worker; start fewer workers, or raise the system's limits", "workers, threads") \
  R(other_thread, "tessera.launch.thread",                                                                              \
    "a team belongs to the thread of its worker; call from the thread that runs the program", "worker")                 \
  R(memory_cap_reached, "tessera.memory.cap",                                                                           \
    "the tensors in use leave no room below the cap on memory; make them smaller, free some, or raise launch_options::memory_cap", \
    "bytes, in use, cap")                                                                                               \
  R(out_of_memory, "tessera.memory.full",                                                                               \
    "the system has no memory for the tensor; make it smaller, free others, or start fewer workers on the machine",     \
    "bytes, in use")                                                                                                    \
  R(workers_disagree, "tessera.agree.fingerprint",                                                                      \
    "two workers do different things at the same place; give all of them the same program, types and extents",          \
    "worker, other worker")                                                                                             \
  R(extents_disagree, "tessera.agree.extent",                                                                           \
    "two workers give a dynamic extent different values; give all of them the same", "dimension, first worker's extent, other worker, its extent") \
  R(copies_differ, "tessera.agree.copies",                                                                              \
    "two workers hold different values where all copies are equal; look at what was assigned or stepped by hand: weights are invariant, not replicate",                  \
    "worker, other worker")                                                                                             \
  R(worker_lost, "tessera.agree.lost",                                                                                  \
    "a worker ended while another one waits for it; see its own message, or give all workers the same operations",      \
    "worker, lost worker")                                                                                              \
  R(workers_wait_in_a_ring, "tessera.agree.deadlock",                                                                   \
    "every worker waits for another one; give all of them the same operations in the same order",                       \
    "worker, waits for")                                                                                                \
  R(call_given_up, "tessera.agree.given_up",                                                                            \
    "a worker gave up an exchange between start and finish and went on; end the program, or finish what was started",   \
    "worker")                                                                                                           \
  R(exchanges_full, "tessera.agree.exchanges",                                                                          \
    "more exchanges are bound at once than MPI has tags; let go of teams and bound exchanges that are done with, or use an MPI with more tags", \
    "most")                                                                                                             \
  R(call_finished, "tessera.call.finished",                                                                             \
    "nothing is under way here: the call was finished before, or moved elsewhere; finish each call once", "")           \
  R(time_limit, "tessera.agree.time",                                                                                   \
    "a worker waited longer than the time limit; look at the worker it waits for, or raise the limit",                  \
    "worker, waits for, seconds")                                                                                       \
  R(wrong_local_shape, "tessera.tensor.shape",                                                                          \
    "the local tensor has not the extents of this worker's box; hand in exactly the box", "dimension, box, given")      \
  R(wrong_element, "tessera.tensor.element", "the tensor has another element type than its type says; convert it",      \
    "expected element, given element")                                                                                  \
  R(wrong_device, "tessera.tensor.device", "the tensor lies on another device than this transport serves; move it",     \
    "device")                                                                                                           \
  R(not_strided, "tessera.tensor.strided", "the tensor is sparse or packed, and a box is plain memory; hand in its to_dense()", "") \
  R(element_unknown, "tessera.element.unknown",                                                                         \
    "a tensor cannot hold this type; use double, float, half, bfloat16, complex64, complex128, bool or an integer of fixed width", \
    "bytes")                                                                                                            \
  R(no_order, "tessera.combine.order", "complex numbers have no maximum or minimum; combine their absolute values",     \
    "axis")                                                                                                             \
  R(tensor_wanted, "tessera.tensor.wanted",                                                                             \
    "a distributed tensor is wanted here; make one by take or assume, or compute with its box, x.local()", "")          \
  R(number_does_not_fit, "tessera.tensor.number",                                                                       \
    "the number is none of the tensor's element, as a fraction is no integer; convert the tensor or the number", "element, number") \
  R(undefined_tensor, "tessera.tensor.undefined", "the tensor is undefined or was moved from; assign it first", "")     \
  R(other_team, "tessera.tensor.team", "the tensors belong to different teams; make both with one team", "")            \
  R(wrong_partition, "tessera.tensor.partition",                                                                        \
    "the tensor has another partition than is wanted here; repartition it", "dimension or -1")                               \
  R(element_has_no_cotangent, "tessera.tensor.cotangent",                                                               \
    "integers and booleans have no gradient; convert the tensor to a floating element first", "")                       \
  R(combine_has_no_gradient, "tessera.combine.gradient",                                                                \
    "only a sum of terms has a gradient; write detach(x) before a maximum, minimum, product, any or all", "axis")       \
  R(no_gradient, "tessera.tensor.gradient",                                                                             \
    "the tensor has no gradient; call requires_grad() before it is used and backward() behind, and ask a leaf", "")      \
  R(forward_mode, "tessera.tensor.forward_mode",                                                                        \
    "derivatives go backward alone, and a forward-mode tangent would be lost; compute outside of a dual level", "")     \
  R(label_out_of_range, "tessera.loss.label", "a label names a class that does not exist; correct the labels",          \
    "label, classes")                                                                                                   \
  R(file_missing, "tessera.file.missing", "the file cannot be read; look at its path and at the reason", "")            \
  R(file_not_written, "tessera.file.write", "the file cannot be written; look at its path and at the reason", "")       \
  R(disk_full, "tessera.file.space", "there is no room for the file; free some, or save it elsewhere", "")              \
  R(not_a_file, "tessera.file.kind", "this is no regular file; name one, not a folder or a device", "")                 \
  R(file_truncated, "tessera.file.truncated", "the file ends too early; write or copy it again", "expected, found")     \
  R(file_altered, "tessera.file.altered", "the file's contents do not fit its checksum or its header; write or copy it again", "")  \
  R(file_not_ours, "tessera.file.format", "the file is not one that this library wrote; name another", "")              \
  R(other_parameters, "tessera.network.parameters",                                                                          \
    "these are other parameters than the network's; load those that the same network saved", "expected, found") \
  R(network_moved_from, "tessera.network.moved",                                                                        \
    "the network was moved from; use the one that it was moved to", "")                                                 \
  R(network_copied, "tessera.network.copy",                                                                             \
    "a network moves and does not copy, since two would step the same weights; move it, or write clone()", "") \
  R(parameter_named_twice, "tessera.network.keys",                                                                      \
    "two parameters have one key; give each network of yours a path, as in seed{7}.at(name)", "")
