#pragma once

namespace tessera::testing {

/// Whether this program was built with the thread sanitizer: g++ says so by a macro, clang by a feature.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool watches_threads = true;
#elif defined(__has_feature)
inline constexpr bool watches_threads = __has_feature(thread_sanitizer);
#else
inline constexpr bool watches_threads = false;
#endif

}  // namespace tessera::testing
