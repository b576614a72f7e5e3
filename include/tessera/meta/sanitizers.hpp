#pragma once

namespace tessera::detail {

/// The sanitizer with which the program is built: g++ says so by a macro, clang by a feature.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool watches_addresses = true;
#elif defined(__has_feature)
inline constexpr bool watches_addresses = __has_feature(address_sanitizer);
#else
inline constexpr bool watches_addresses = false;
#endif

#if defined(__SANITIZE_THREAD__)
inline constexpr bool watches_threads = true;
#elif defined(__has_feature)
inline constexpr bool watches_threads = __has_feature(thread_sanitizer);
#else
inline constexpr bool watches_threads = false;
#endif

}  // namespace tessera::detail
