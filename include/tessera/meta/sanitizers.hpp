#pragma once

namespace tessera::detail {

// With which sanitizer the program is built: clang says so by a feature, g++ by a macro.
#if defined(__has_feature)
inline constexpr bool watches_addresses = __has_feature(address_sanitizer);
inline constexpr bool watches_threads = __has_feature(thread_sanitizer);
#else
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool watches_addresses = true;
#else
inline constexpr bool watches_addresses = false;
#endif
#if defined(__SANITIZE_THREAD__)
inline constexpr bool watches_threads = true;
#else
inline constexpr bool watches_threads = false;
#endif
#endif

}  // namespace tessera::detail
