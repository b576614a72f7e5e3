#pragma once

#include <tessera/meta/refusal.hpp>

/// The refusals of this floor: the code, the numbers, and a sentence that says what is wrong and what to do.
namespace tessera::code {

inline constexpr reason file_misread{"tessera.file.written", "",
                                     "the file is not written as its kind is; correct it at this place"};

}  // namespace tessera::code
