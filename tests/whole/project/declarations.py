"""What the scripts read of headers, of a header with every form of declaration."""
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "scripts"))
from declarations import all_declarations, with_lists_expanded  # noqa: E402

header = r"""#pragma once
#define LISTED(f)      \
  f(first, "a, b {", 1) \
  f(second, h(1, 2), 2)
#ifdef SOMETHING
#define PREFIX inline
#else
#define PREFIX
#endif
namespace a {
class elsewhere;
struct other_forward;
/// Said once,
/// in two lines.
template <class T, int N = (3 > 2)>
  requires requires(T t) { t.size(); } && (N > 1)
struct defined : base<T, N>, private detail::more {
  struct inside {};
  int member() const { return N; }
};
template <>
struct defined<int, 2> {};
template <class T>
struct std::hash<a::defined<T>> {};
// not said
struct [[nodiscard]] marked final {
} an_object;
enum class colours : signed char { red, green = '{' };
enum bare { one };  ///< behind it
template <class T>
concept Sized = requires(const T& t) { t.size(); } || std::is_same_v<T, int>;
using short_name = very::long_name<int, 3>;
template <class T>
using of = defined<T, 3>;
using b::brought;

inline constexpr int count = 1'000'000;
inline constexpr entry table[2][2]{{1, 2}, {3, 4}};
template <class T>
inline constexpr bool kind_of = false;
template <class T>
inline constexpr bool kind_of<of<T>> = true;
inline constexpr auto square = [](int x) { return x * x; };
extern const char* const words;
constexpr bool operator==(const marked& x, const marked& y) { return true; }
template <class X>
  requires(kind_of<X> && !of<X>::bad)
[[nodiscard]] constexpr auto call([[maybe_unused]] const X& x, int n = f({1, 2})) noexcept(noexcept(x)) -> decltype(x) {
  if (n > 0) { return x; }
  return "}" R"(})" '}';
}
std::vector<std::pair<int, int>> pairs_of(const std::function<int(int)>& f);
marked::marked(int n) : base{n}, other(n) { run(); }
template <class T>
int defined<T, 3>::member() const { return 1; }
defined(int) -> defined<int, 2>;
static_assert(sizeof(int) == 4);
/* a block { */
namespace detail {
int hidden();
}  // namespace detail
#define MAKE(name, text, n)              \
  inline int name(int x) { return n; }   \
  int compute_##name(const char* = #name);
TESSERA_LISTED(MAKE)
#undef MAKE
#define TESSERA_ONE(name) int name();
/// Alone.
TESSERA_ONE(alone)
TESSERA_ONE(beside)
namespace inner::deep {
inline int g() { return 0; }
}  // namespace inner::deep
extern "C" {
int in_c();
}
}  // namespace a
inline int outside() { return 1; }
""".replace("LISTED", "TESSERA_LISTED", 1)

expected = """
a forward elsewhere
a forward other_forward
a struct defined
a struct marked
a enum colours
a enum bare
a concept Sized
a alias short_name
a alias of
a alias brought
a variable count
a variable table
a variable kind_of
a variable square
a variable words
a function operator==
a function call
a function pairs_of
a::detail function hidden
a function first
a function compute_first
a function second
a function compute_second
a function alone
a function beside
a::inner::deep function g
a function in_c
 function outside
"""

with tempfile.TemporaryDirectory() as folder:
    pathlib.Path(folder, "some.hpp").write_text(header)
    found = [d for _, d in all_declarations(pathlib.Path(folder))]
    written = with_lists_expanded(pathlib.Path(folder, "some.hpp"), pathlib.Path(folder)).splitlines()
read = "\n".join(f"{d.namespace} {d.kind} {d.name}" for d in found)
if read != expected.strip("\n"):
    sys.exit(f"read:\n{read}")
said = {d.name: d.said for d in found if d.said}
if said != {"defined": ("Said once,", "in two lines."), "bare": ("behind it",), "alone": ("Alone.",)}:
    sys.exit(f"said: {said}")
covered = [d.name for d in found if d.covered]
if covered != ["defined", "bare", "Sized", "short_name", "of", "brought", "alone", "beside"]:
    sys.exit(f"covered: {covered}")
if {d.name for d in found if d.listed} != {"first", "second", "compute_first", "compute_second", "alone", "beside"}:
    sys.exit(f"listed: {[d.name for d in found if d.listed]}")
lines = header.splitlines()
wrong = [d for d in found if not d.listed and "template" not in lines[d.line - 1] and d.name not in lines[d.line - 1]]
if wrong:
    sys.exit(f"stands elsewhere: {wrong}")
at = written.index("/// Alone.")
if written[at:at + 4] != ["/// Alone.", "int alone();", "/// Alone.", "int beside();"] or not any("compute_second" in w for w in written):
    sys.exit("\n".join(written))
