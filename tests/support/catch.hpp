#pragma once
// The only place that includes Catch2, whose version 3 has other headers than the 2.13 that Debian 12 brings. LibTorch
// logs under the name CHECK, so its header comes first.

#if __has_include(<c10/util/Logging.h>)
#include <c10/util/Logging.h>
#undef CHECK
#endif
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;  // version 2 does so itself
#else
#include <catch2/catch.hpp>
#endif
