#pragma once

#include <tessera/nn/refusals.hpp>

// Made by scripts/make_verdicts from nn/refusals.hpp; a test holds the two against each other.

namespace tessera {

template <index_t... Numbers> struct not_a_maximum : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.layer.indices] only a maximum lies somewhere; ask a max_pool for indices");
  }
};
template <index_t... Numbers> struct label_out_of_range : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.loss.label] a label names a class that does not exist; correct the labels");
  }
};
template <index_t... Numbers> struct file_missing : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.file.missing] the file cannot be read; look at its path and at the reason");
  }
};
template <index_t... Numbers> struct file_not_written : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.file.write] the file cannot be written; look at its path and at the reason");
  }
};
template <index_t... Numbers> struct disk_full : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.file.space] there is no room for the file; free some, or save it elsewhere");
  }
};
template <index_t... Numbers> struct not_a_file : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.file.kind] this is no regular file; name one, not a folder or a device");
  }
};
template <index_t... Numbers> struct file_truncated : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.file.truncated] the file ends too early; write or copy it again");
  }
};
template <index_t... Numbers> struct file_altered : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.file.altered] the file's contents do not fit its checksum or its header; write or copy it again");
  }
};
template <index_t... Numbers> struct file_not_ours : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.file.format] the file is not one that this library wrote; name another");
  }
};
template <index_t... Numbers> struct other_parameters : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.network.parameters] these are other parameters than the network's; load those that the same network saved");
  }
};
template <index_t... Numbers> struct network_made_otherwise : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.network.arguments] a network is made of its team and a seed; write net{team, seed{7}}");
  }
};
template <index_t... Numbers> struct network_moved_from : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.network.moved] the network was moved from; use the one that it was moved to");
  }
};
template <index_t... Numbers> struct network_copied : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.network.copy] a network moves and does not copy, since two would step the same weights; move it, or write clone()");
  }
};
template <index_t... Numbers> struct parameter_named_twice : refused {
  template <class Where> static constexpr void refuse() {
    static_assert(Where::ok,
                  "[tessera.network.keys] two parameters have one key; give each network of yours a path, as in seed{7}.at(name)");
  }
};

namespace detail {

template <index_t... Numbers> struct verdict_named<&code::not_a_maximum, Numbers...> { using type = not_a_maximum<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::label_out_of_range, Numbers...> { using type = label_out_of_range<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::file_missing, Numbers...> { using type = file_missing<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::file_not_written, Numbers...> { using type = file_not_written<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::disk_full, Numbers...> { using type = disk_full<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::not_a_file, Numbers...> { using type = not_a_file<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::file_truncated, Numbers...> { using type = file_truncated<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::file_altered, Numbers...> { using type = file_altered<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::file_not_ours, Numbers...> { using type = file_not_ours<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::other_parameters, Numbers...> { using type = other_parameters<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::network_made_otherwise, Numbers...> { using type = network_made_otherwise<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::network_moved_from, Numbers...> { using type = network_moved_from<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::network_copied, Numbers...> { using type = network_copied<Numbers...>; };
template <index_t... Numbers> struct verdict_named<&code::parameter_named_twice, Numbers...> { using type = parameter_named_twice<Numbers...>; };

}  // namespace detail
}  // namespace tessera
