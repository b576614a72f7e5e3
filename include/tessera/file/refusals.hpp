#pragma once

#include <tessera/meta/refusal.hpp>

/// What this floor refuses: the code, what is wrong and what to do, and what is told with it.
namespace tessera::code {

inline constexpr reason file_misread{"tessera.file.written", "",
                                     "the file is not written as its kind is; correct it at this place"};

}  // namespace tessera::code
