#pragma once

namespace tessera {

/// The version; docs/versions.md says what it promises.
inline constexpr int version_major = 0;
inline constexpr int version_minor = 1;
inline constexpr int version_patch = 0;

}  // namespace tessera
