#pragma once

#include <tessera/operation/refusals.hpp>

// Made by scripts/make_verdicts from operation/refusals.hpp; a test holds the two against each other.

namespace tessera {

template <index_t... Numbers> struct meshes_differ : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.rule.mesh] the operands of a local operation live on different meshes; repartition one");
  }
};
template <index_t... Numbers> struct nonlinear_on_partial : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.rule.nonlinear] only a linear operation acts on single terms, and only on those of a sum; all_reduce them first");
  }
};
template <index_t... Numbers> struct product_of_partials : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.rule.product] a product of two pending sums is not the sum of the products; all_reduce one of them first");
  }
};
template <index_t... Numbers> struct invariant_mixed : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.rule.invariant] an invariant operand meets one that differs along this axis; change it to replicate (copy_in) first");
  }
};
template <index_t... Numbers> struct held_on_one_coordinate : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.rule.on] one operand is held on a single coordinate of this axis and another is not; broadcast it first");
  }
};
template <index_t... Numbers> struct cut_unalike : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.rule.cut] the operands are cut differently along this axis; repartition one of them");
  }
};
template <index_t... Numbers> struct haloed_summed : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.rule.haloed] a haloed dimension holds some elements twice, so it must not be summed over; accumulate it to blocks first");
  }
};
template <index_t... Numbers> struct dimension_needed_whole : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.rule.whole] the operation needs this dimension whole, but it is cut; repartition it first");
  }
};
template <index_t... Numbers> struct window_without_halo : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.rule.window] a windowed operation on a cut dimension needs the halo of its own window; halo_exchange it first");
  }
};
template <index_t... Numbers> struct pending_not_linear : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.rule.pending] a pending dimension holds terms; accumulate it to blocks before anything but a linear operation");
  }
};
template <index_t... Numbers> struct signature_unreadable : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.signature.text] a signature reads as in nk,mk->nm, a letter for each dimension, one arrow; correct it at this character");
  }
};
template <index_t... Numbers> struct signature_too_large : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.signature.size] an operation has at most 4 operands of 16 dimensions each; merge some");
  }
};
template <index_t... Numbers> struct letter_named_twice : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.signature.twice] an operand or the result names a dimension twice; give each a letter of its own");
  }
};
template <index_t... Numbers> struct letter_from_nowhere : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.signature.result] the result names a dimension that no operand has and no role makes; name it in an operand");
  }
};
template <index_t... Numbers> struct role_does_not_fit : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.signature.role] this role does not fit its dimension; docs/adding-operations.md lists what each takes");
  }
};
template <index_t... Numbers> struct wrong_number_of_operands : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.signature.operands] the operation takes another number of operands; hand in as many as its signature names");
  }
};
template <index_t... Numbers> struct operand_of_other_dimensions : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.signature.dimensions] the operation takes another number of dimensions of this operand; reshape it, or choose another operation");
  }
};
template <index_t... Numbers> struct split_uneven : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.signature.split] the extent is no multiple of the inner extent; choose one that divides it");
  }
};
template <index_t... Numbers> struct windows_do_not_compose : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.window.compose] these layers share no halo: windows compose where all see zeros beyond the edge or go around it; exchange one for each");
  }
};
template <index_t... Numbers> struct layer_has_no_window : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.one_halo] only convolutions, poolings and elementwise layers share a halo; move this layer out of one_halo");
  }
};
template <index_t... Numbers> struct padding_wider_than_half_kernel : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.window.padding] a pooling window may lie by at most half in the padding; make the padding smaller");
  }
};
template <index_t... Numbers> struct mean_of_integers : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.element] a mean of integers is no integer; convert the tensor to a floating element first");
  }
};
template <index_t... Numbers> struct groups_do_not_divide : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.groups] the features are no multiple of the groups; choose groups that divide both");
  }
};
template <index_t... Numbers> struct layer_takes_other_dimensions : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.dimensions] the layer takes a tensor of another number of dimensions; flatten or reshape before it");
  }
};
template <index_t... Numbers> struct wrong_kernel : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.kernel] the layer takes a kernel of 1 to 3 extents; name it, as in kernel<3, 3>");
  }
};
template <index_t... Numbers> struct dimension_not_there : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.dimension] the input has no such dimension; name one from 0 on");
  }
};
template <index_t... Numbers> struct divisor_not_positive : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.divisor] the divisor of an average is at least 1; write a larger one");
  }
};
template <index_t... Numbers> struct not_an_option_of_linear : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.linear.option] linear takes cut_out, cut_in, output_as and no_bias; leave this option out");
  }
};
template <index_t... Numbers> struct not_an_option_of_conv : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.conv.option] conv takes kernel, stride, padding, padding_at, padding_mode, dilation, groups, cut_out, cut_in, output_as and no_bias; leave this option out");
  }
};
template <index_t... Numbers> struct not_an_option_of_max_pool : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.max_pool.option] max_pool takes kernel, stride, padding, padding_at, dilation and ceil_mode; leave this option out");
  }
};
template <index_t... Numbers> struct not_an_option_of_avg_pool : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.avg_pool.option] avg_pool takes kernel, stride, padding, padding_at, dilation, ceil_mode, exclude_padding and divisor; leave this option out");
  }
};
template <index_t... Numbers> struct not_an_option_of_pad : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.pad.option] pad takes padding_mode behind its widths; leave this option out");
  }
};
template <index_t... Numbers> struct option_given_twice : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.twice] two options of the layer speak of the same thing, as padding and padding_at do; drop one");
  }
};
template <index_t... Numbers> struct option_of_other_dimensions : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.options] an option of the layer names another number of dimensions than its kernel; name one value for all or one each");
  }
};

namespace detail {

template <index_t... Numbers> struct verdict_named<&code::meshes_differ, Numbers...> { using type = meshes_differ<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::nonlinear_on_partial, Numbers...> { using type = nonlinear_on_partial<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::product_of_partials, Numbers...> { using type = product_of_partials<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::invariant_mixed, Numbers...> { using type = invariant_mixed<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::held_on_one_coordinate, Numbers...> { using type = held_on_one_coordinate<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::cut_unalike, Numbers...> { using type = cut_unalike<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::haloed_summed, Numbers...> { using type = haloed_summed<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::dimension_needed_whole, Numbers...> { using type = dimension_needed_whole<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::window_without_halo, Numbers...> { using type = window_without_halo<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::pending_not_linear, Numbers...> { using type = pending_not_linear<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::signature_unreadable, Numbers...> { using type = signature_unreadable<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::signature_too_large, Numbers...> { using type = signature_too_large<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::letter_named_twice, Numbers...> { using type = letter_named_twice<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::letter_from_nowhere, Numbers...> { using type = letter_from_nowhere<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::role_does_not_fit, Numbers...> { using type = role_does_not_fit<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::wrong_number_of_operands, Numbers...> { using type = wrong_number_of_operands<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::operand_of_other_dimensions, Numbers...> { using type = operand_of_other_dimensions<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::split_uneven, Numbers...> { using type = split_uneven<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::windows_do_not_compose, Numbers...> { using type = windows_do_not_compose<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::layer_has_no_window, Numbers...> { using type = layer_has_no_window<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::padding_wider_than_half_kernel, Numbers...> { using type = padding_wider_than_half_kernel<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::mean_of_integers, Numbers...> { using type = mean_of_integers<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::groups_do_not_divide, Numbers...> { using type = groups_do_not_divide<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::layer_takes_other_dimensions, Numbers...> { using type = layer_takes_other_dimensions<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::wrong_kernel, Numbers...> { using type = wrong_kernel<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::dimension_not_there, Numbers...> { using type = dimension_not_there<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::divisor_not_positive, Numbers...> { using type = divisor_not_positive<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::not_an_option_of_linear, Numbers...> { using type = not_an_option_of_linear<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::not_an_option_of_conv, Numbers...> { using type = not_an_option_of_conv<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::not_an_option_of_max_pool, Numbers...> { using type = not_an_option_of_max_pool<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::not_an_option_of_avg_pool, Numbers...> { using type = not_an_option_of_avg_pool<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::not_an_option_of_pad, Numbers...> { using type = not_an_option_of_pad<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::option_given_twice, Numbers...> { using type = option_given_twice<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::option_of_other_dimensions, Numbers...> { using type = option_of_other_dimensions<Numbers...>; };

}  // namespace detail
}  // namespace tessera
