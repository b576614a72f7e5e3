#pragma once

#include <tessera/tensor/refusals.hpp>

// Made by scripts/make_verdicts from tensor/refusals.hpp; a test holds the two against each other.

namespace tessera {

template <index_t... Numbers> struct boxes_are_no_product : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.adopt.product] the boxes that workers hand in are no product of lengths; workers of one part need the same length in its dimension");
  }
};
template <index_t... Numbers> struct uneven_shift : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.shift.uneven] parts of different lengths cannot take each other's place; turn the deal instead, with rotated<...>");
  }
};
template <index_t... Numbers> struct shift_inside : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.shift.axis] only the outermost axis that cuts a dimension turns it; name that axis");
  }
};
template <index_t... Numbers> struct not_a_scalar : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tensor.scalar] only a scalar starts backward or steers the program; sum the tensor first");
  }
};
template <index_t... Numbers> struct not_steering : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.value.copies] only a tensor that all workers hold alike may steer the program; change it to invariant first");
  }
};
template <index_t... Numbers> struct holds_nothing : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.value.outside] this worker lies outside the tensor's mesh and has no value of it; ask on a worker that does, or broadcast it first");
  }
};
template <index_t... Numbers> struct wrong_local_shape : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tensor.shape] the local tensor has not the extents of this worker's box; hand in exactly the box");
  }
};
template <index_t... Numbers> struct wrong_device : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tensor.device] the tensor lies on another device than this transport serves; move it");
  }
};
template <index_t... Numbers> struct not_strided : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tensor.strided] the tensor is sparse or packed, and a box is plain memory; hand in its to_dense()");
  }
};
template <index_t... Numbers> struct tensor_wanted : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tensor.wanted] a distributed tensor is wanted here; make one by take or assume, or compute with its box, x.local()");
  }
};
template <index_t... Numbers> struct number_does_not_fit : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tensor.number] the number is none of the tensor's element, as a fraction is no integer; convert the tensor or the number");
  }
};
template <index_t... Numbers> struct undefined_tensor : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tensor.undefined] the tensor is undefined or was moved from; assign it first");
  }
};
template <index_t... Numbers> struct other_team : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tensor.team] the tensors belong to different teams; make both with one team");
  }
};
template <index_t... Numbers> struct no_gradient : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tensor.gradient] the tensor has no gradient; call requires_grad() before it is used and backward() behind, and ask a leaf");
  }
};
template <index_t... Numbers> struct forward_mode : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.tensor.forward_mode] derivatives go backward alone, and a forward-mode tangent would be lost; compute outside of a dual level");
  }
};

namespace detail {

template <index_t... Numbers> struct verdict_named<&code::boxes_are_no_product, Numbers...> { using type = boxes_are_no_product<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::uneven_shift, Numbers...> { using type = uneven_shift<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::shift_inside, Numbers...> { using type = shift_inside<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::not_a_scalar, Numbers...> { using type = not_a_scalar<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::not_steering, Numbers...> { using type = not_steering<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::holds_nothing, Numbers...> { using type = holds_nothing<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::wrong_local_shape, Numbers...> { using type = wrong_local_shape<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::wrong_device, Numbers...> { using type = wrong_device<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::not_strided, Numbers...> { using type = not_strided<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::tensor_wanted, Numbers...> { using type = tensor_wanted<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::number_does_not_fit, Numbers...> { using type = number_does_not_fit<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::undefined_tensor, Numbers...> { using type = undefined_tensor<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::other_team, Numbers...> { using type = other_team<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::no_gradient, Numbers...> { using type = no_gradient<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::forward_mode, Numbers...> { using type = forward_mode<Numbers...>; };

}  // namespace detail
}  // namespace tessera
