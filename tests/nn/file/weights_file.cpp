#include "tests/support/tensors.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <torch/optim/sgd.h>
#include <unistd.h>
#include <csignal>
#include <nlohmann/json.hpp>
#include <tessera/nn/file/atomic_file.hpp>
#include <tessera/nn/file/throw_on_all.hpp>
#include <tessera/nn/file/weights_file.hpp>
#include <tessera/nn/file/weights_stream.hpp>
#include <tessera/tensor/memory/memory_count.hpp>

#include <array>
#include <fstream>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

// What a test sees of flushing, which the library calls as it calls the system's.
static thread_local std::function<int(bool of_folder)> at_flush;
extern "C" int fsync(int descriptor) {
  struct stat is{};
  if (at_flush && ::fstat(descriptor, &is) == 0)
    if (const int reason = at_flush(S_ISDIR(is.st_mode)); reason != 0) {
      errno = reason;
      return -1;
    }
  return static_cast<int>(::syscall(SYS_fsync, descriptor));
}

namespace {

struct weights_batch : dyn {};
struct height : axis<2> {};
struct breadth : axis<2> {};
struct queue : axis<3> {};
using two_by_two = mesh<height, breadth>;
using line = mesh<queue>;
using by_both = tensor<partition<two_by_two, blocks<height>, blocks<breadth>>, shape<weights_batch, dim<5>>, double>;
using by_queue = tensor<partition<line, blocks<queue>, whole>, shape<weights_batch, dim<5>>, double>;
using on_square = nn::sequential<by_both, nn::linear<6>, nn::relu, nn::linear<4>>;
using on_line = nn::sequential<by_queue, nn::linear<6>, nn::relu, nn::linear<4>>;

bool equal_states(const nn::state_dict& a, const nn::state_dict& b) {
  bool same = a.size() == b.size();
  for (const auto& [key, t] : a) same = same && b.count(key) == 1 && same_bits(t, b.at(key));
  return same;
}

/// A folder of its own for the files of a test.
struct scratch_folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / fmt::format("tessera_weights_{}", ::getpid());
  scratch_folder() { std::filesystem::create_directories(path); }
  ~scratch_folder() { std::filesystem::remove_all(path); }
  std::filesystem::path operator/(const std::string& name) const { return path / name; }
  std::size_t files() const {
    std::size_t n = 0;
    for ([[maybe_unused]] const auto& f : std::filesystem::directory_iterator(path)) ++n;
    return n;
  }
};

std::string bytes_of_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

nn::state_dict small_state(double value) {
  return {{"0.bias", at::full({2}, value, at::kDouble)}, {"0.weight", at::full({2, 3}, value, at::kFloat)}};
}

/// A file with this header and these bytes behind it.
std::string file_with(const std::string& header, const std::string& data) {
  std::string bytes(8, '\0');
  for (std::size_t i = 0, n = header.size(); i < 8; ++i, n >>= 8) bytes[i] = static_cast<char>(n & 0xff);
  return bytes + header + data;
}

/// The same with the entries' checksum, so that a reader must judge the entries themselves.
std::string sealed(const std::string& entries, const std::string& data) {
  std::uint64_t h = 14695981039346656037u;
  for (const char c : nlohmann::json::parse(entries).dump() + data)
    h = (h ^ static_cast<unsigned char>(c)) * 1099511628211u;
  const std::string more = entries == "{}" ? "" : ",";
  return file_with(fmt::format(R"({{"__metadata__":{{"fnv1a64":"{:016x}"}}{}{})", h, more, entries.substr(1)), data);
}

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const error& e) {
    return e.what();
  } catch (const std::exception& e) {
    return std::string("other: ") + e.what();
  }
  return "none";
}

bool begins(const std::string& text, const std::string& code) { return text.rfind("[tessera." + code + "]", 0) == 0; }

/// What loading a file into a network that differs from it comes to: the error on each worker, and whether nothing
/// changed.
struct attempt {
  std::string said;
  bool kept = false;
};
template <class Load>
auto attempts(Load&& load) {
  return in_team<line>([&](auto& t) {
    on_line net{t, seed{9}};
    const nn::state_dict before = nn::state_of(net);
    attempt a;
    a.said = error_of([&] { load(net); });
    a.kept = equal_states(before, nn::state_of(net));
    return a;
  });
}

/// The same where `odd` alone finds another file under the path, as on a disk of its own.
auto attempts_where_one_finds(const std::filesystem::path& other, int odd, const std::filesystem::path& path) {
  return attempts([&](on_line& net) {
    nn::state_dict state;
    tessera::detail::throw_on_all(net.team(), code::file_missing,
                                  [&] { state = nn::read_state(net.team()->rank() == odd ? other : path); });
    nn::assign(net, state);
  });
}

}  // namespace

TEST_CASE("a bad weights file is one error on every worker, names who has it, and changes nothing", "[refusal]") {
  const scratch_folder folder;
  const auto path = folder / "good";
  const auto saved = in_team<two_by_two>([&](auto& t) {
    nn::save(on_square{t, seed{8}}, path);
    return true;
  });
  REQUIRE(saved.well());
  const std::string good = bytes_of_file(path);
  std::string altered = good;
  altered[altered.size() - 3] ^= 1;
  std::string renamed = good;
  renamed.replace(renamed.find("2.bias"), 6, "8.bias");
  std::string reshaped = good;
  reshaped.replace(reshaped.find("[6,5]"), 5, "[5,6]");
  std::string endless = good;
  for (std::size_t i = 0; i < 8; ++i) endless[i] = '\x7f';
  nn::write_state(folder / "other", small_state(1));
  const std::pair<std::string, const char*> cases[]{
      {"", "file.truncated"},
      {good.substr(0, 100), "file.truncated"},
      {good.substr(0, good.size() - 1), "file.truncated"},
      {altered, "file.altered"},
      {renamed, "file.altered"},
      {reshaped, "file.altered"},
      {bytes_of_file(folder / "other"), "network.parameters"},
      {endless, "file.format"},
      {"this is a text that is certainly longer than eight bytes", "file.format"},
      {file_with("{}", ""), "network.parameters"},
  };
  const auto judge = [&](const auto& all, const char* code, const std::string& names) {
    INFO(code << ": " << all.errors());
    REQUIRE(all.well());
    for (const auto& r : all.results) {
      CHECK(r->kept);
      CHECK((begins(r->said, code) && r->said.find(names) != std::string::npos));
    }
  };
  const auto bad = folder / "bad";
  for (const auto& [bytes, code] : cases) {
    write_bytes(bad, bytes);
    judge(attempts([&](on_line& net) { nn::load(net, bad); }), code, "[" + bad.string());
    const bool whole = std::string(code) == "network.parameters";  // another file than the other workers'
    judge(attempts_where_one_finds(bad, 1, path), whole ? "agree.copies" : code,
          whole ? "0.bias]" : "[queue 1: " + bad.string());
  }
  const std::string nowhere = (folder / "nowhere").string();
  judge(attempts([&](on_line& net) { nn::load(net, nowhere); }), "file.missing",
        "[" + nowhere + ": No such file or directory]");
  judge(attempts_where_one_finds(nowhere, 2, path), "file.missing", "[queue 2: " + nowhere + ": No such");
}

TEST_CASE("a path of each worker's own is refused where one file is meant, and nothing is written", "[refusal]") {
  const scratch_folder folder;
  const auto own = [&](const on_line& net) { return folder / fmt::format("weights_{}", net.team()->rank() / 2); };
  const auto both =
      fmt::format("[worker 0: {{}} a network {0}_0; worker 2: {{}} a network {0}_1]", (folder / "weights").string());
  for (const bool saves : {true, false}) {
    const auto all = attempts([&](on_line& net) { saves ? nn::save(net, own(net)) : nn::load(net, own(net)); });
    const char* does = saves ? "saving" : "loading";
    INFO(all.errors());
    for (const auto& r : all.results) {
      INFO(r->said);
      CHECK((begins(r->said, "agree.fingerprint") &&
             r->said.find(fmt::format(fmt::runtime(both), does, does)) != std::string::npos && r->kept));
    }
    CHECK(folder.files() == 0);
  }
}

TEST_CASE("a file that is no weights file is one error, whatever it holds", "[refusal]") {
  const scratch_folder folder;
  const auto path = folder / "file";
  nn::write_state(path, small_state(1));
  const std::string good = bytes_of_file(path);
  const auto said = [&](const std::string& bytes) {
    write_bytes(path, bytes);
    return error_of([&] { nn::read_state(path); });
  };
  const auto refused = [](const std::string& text) {
    const char* codes[]{"file.truncated", "file.altered", "file.format", "file.element"};
    return std::any_of(std::begin(codes), std::end(codes), [&](const char* code) { return begins(text, code); });
  };
  CHECK(said(good) == "none");
  for (std::size_t n = 0; n < good.size(); ++n) {
    INFO("the first " << n << " bytes");
    CHECK(refused(said(good.substr(0, n))));
  }
  const std::size_t blanks = good.find("}}") + 2;  // they fill the header up, and mean nothing
  for (std::size_t i = 0; i < good.size(); ++i)
    for (const int bit : {1, 16, 128}) {
      std::string flipped = good;
      flipped[i] = static_cast<char>(flipped[i] ^ bit);
      if (good[i] == ' ' && i >= blanks) continue;
      INFO("byte " << i << ", bit " << bit);
      const std::string text = said(flipped);
      // the checksum has lost its name
      const bool unsealed = text == "none" && flipped.find("xxh64") == std::string::npos;
      CHECK((refused(text) || (unsealed && equal_states(nn::read_state(path), small_state(1)))));
    }
  CHECK(begins(said(good + "x"), "file.altered"));

  const std::string eight(8, 'x');
  const auto entry = [](const char* dtype, const char* shape, const char* offsets) {
    return fmt::format(R"({{"w":{{"dtype":{},"shape":{},"data_offsets":{}}}}})", dtype, shape, offsets);
  };
  REQUIRE(said(sealed(entry("\"F64\"", "[1]", "[0,8]"), eight)) == "none");
  REQUIRE(said(sealed("{}", "")) == "none");
  const std::string wrong[]{
      entry("64", "[1]", "[0,8]"),
      entry("\"F64\"", "[-1]", "[0,8]"),
      entry("\"F64\"", "[1.0]", "[0,8]"),
      entry("\"F64\"", "1", "[0,8]"),
      entry("\"F64\"", "[2]", "[0,8]"),
      entry("\"F64\"", "[4294967296,4294967296]", "[0,8]"),
      entry("\"F64\"", "[4294967296,536870912,0]", "[0,0]"),
      entry("\"F64\"", "[18446744073709551615]", "[0,8]"),
      entry("\"F64\"", "[2305843009213693953]", "[0,8]"),
      entry("\"F64\"", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,8]"),
      entry("\"F64\"", "[1]", "[8,0]"),
      entry("\"F64\"", "[1]", "[0]"),
      entry("\"F64\"", "[1]", "[-8,0]"),
      entry("\"F64\"", "[1]", "[1,9]"),
      entry("\"F64\"", "[1]", "[18446744073709551608,18446744073709551615]"),
      entry("\"F64\"", "[0]", "[0,0]"),  // and bytes that nothing claims
      R"({"w":[]})",
      R"({"w":{"dtype":"F64","shape":[1]}})",
      R"({"w":{"dtype":"F64","shape":[1],"data_offsets":[0,8],"more":1}})",
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
  };
  for (const std::string& entries : wrong) {
    INFO(entries);
    CHECK(begins(said(sealed(entries, eight)), "file.altered"));
  }
  // and allocates nothing
  CHECK(begins(said(sealed(entry("\"F64\"", "[1000000000000]", "[0,8000000000000]"), eight)), "file.truncated"));
  for (const char* type : {"F63", "F8_E4M3", "", "f64"}) {
    const std::string text = said(sealed(entry(fmt::format("\"{}\"", type).c_str(), "[1]", "[0,8]"), eight));
    CHECK((begins(text, "file.element") &&
           text.find(fmt::format("[{}: w is {}]", path.string(), type)) != std::string::npos));
  }
  const std::string w = R"("w":{"dtype":"F64","shape":[1],"data_offsets":[0,8]})";
  for (const char* words : {"[]", "3", R"({"a":1})", R"({"a":{}})", R"({"a":null})", R"({"a":"b","a":"b"})"})
    CHECK(begins(said(file_with(fmt::format(R"({{"__metadata__":{},{}}})", words, w), eight)), "file.format"));
  for (const std::string& around :
       {" {" + w + "}", "{" + w + "}x", "[" + w + "]", std::string("{" + w + "}") + '\0', "\xef\xbb\xbf{" + w + "}"})
    CHECK(begins(said(file_with(around, eight)), "file.format"));
  CHECK(begins(said(sealed(entry("\"F64\"", "[[1]]", "[0,8]"), eight)), "file.format"));
  CHECK(begins(said(sealed("{" + w + "," + w + "}", eight)), "file.format"));
  CHECK(begins(said(sealed(R"({"w":{"dtype":"F64","dtype":"F64","shape":[1],"data_offsets":[0,8]}})", eight)),
               "file.format"));
  for (const char open : {'[', '{'}) {
    std::string deep = R"({"__metadata__":{"fnv1a64":"0"},"w":)";
    for (int i = 0; i < 300'000; ++i) deep += open == '[' ? "[" : R"({"a":)";
    CHECK(begins(said(file_with(deep, "")), "file.format"));
    deep += "1";
    for (int i = 0; i < 300'000; ++i) deep += open == '[' ? ']' : '}';
    CHECK(begins(said(file_with(deep + "}", "")), "file.format"));
  }

  const auto fifo = folder / "fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  for (const std::filesystem::path& what : {folder.path, fifo, std::filesystem::path("/dev/zero")})
    CHECK(begins(error_of([&] { nn::read_state(what); }), "file.kind"));
  CHECK(begins(error_of([&] { nn::read_state(""); }), "file.missing"));
}

TEST_CASE("a file of any bytes appears whole, or what was there stays", "[refusal][runtime]") {
  const scratch_folder folder;
  const auto path = folder / "picture";
  write_whole(path, "a first one");
  write_whole(path, "another");
  CHECK(bytes_of_file(path) == "another");
  at_flush = [](bool) { return ENOSPC; };
  CHECK(told([&] { write_whole(path, "a third one"); }) == "tessera.file.space");
  at_flush = nullptr;
  CHECK(bytes_of_file(path) == "another");
  CHECK(folder.files() == 1);
  CHECK(told([&] { write_whole(folder / "nowhere" / "picture", ""); }) == "tessera.file.write");
}

TEST_CASE(
    "a file that another program wrote is read: keys in any order, words of its own, any element, data that is not "
    "aligned",
    "[runtime]") {
  const scratch_folder folder;
  const auto path = folder / "foreign";
  const float weight[]{1, -2, 3.5F, 4, 5, -6};
  std::string data{1, 0, 1};                               // bool
  data.append(reinterpret_cast<const char*>(weight), 24);  // float, from byte 3 on
  data += std::string("\x00\x3e", 2);                      // half 1.5
  data += std::string("\x00\xc0", 2);                      // bfloat16 -2
  data += '\xfe';                                          // int8 -2
  const std::string entries =
      R"("z.weight":{"data_offsets":[3,27],"shape":[2,3],"dtype":"F32"} , "half":{"dtype":"F16","shape":[],
         "data_offsets":[27,29]},
    "flags":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]},"none":{"dtype":"I64","shape":[0,4],"data_offsets":[3,3]},
    "b":{"dtype":"BF16","shape":[1,1],"data_offsets":[29,31]},"\u00e9":{"dtype":"I8","shape":[1],
     "data_offsets":[31,32]})";
  const nn::state_dict wanted{{"z.weight", at::tensor({1.0F, -2.0F, 3.5F, 4.0F, 5.0F, -6.0F}).reshape({2, 3})},
                              {"half", at::full({}, 1.5, at::kHalf)},
                              {"flags", at::tensor({1, 0, 1}).to(at::kBool)},
                              {"none", at::empty({0, 4}, at::kLong)},
                              {"b", at::full({1, 1}, -2, at::kBFloat16)},
                              {"\u00e9", at::full({1}, -2, at::kChar)}};
  for (const char* words :
       {"", R"("__metadata__":{"format":"pt","\u0020":"{}[],:\\", "":""},)", R"("__metadata__":{},)"})
    for (const char* blanks : {"", " ", "             "}) {
      write_bytes(path, file_with(fmt::format("{{{}{}}}{}", words, entries, blanks), data));
      CHECK(error_of([&] { nn::read_state(path); }) == "none");
      CHECK(equal_states(nn::read_state(path), wanted));
    }
}

TEST_CASE("keys are renamed as a table says, on load and on save, and a wrong table is refused", "[refusal][runtime]") {
  const scratch_folder folder;
  const auto path = folder / "foreign";
  const nn::renamed names{{"encoder.w", "0.weight"}, {"encoder.b", "0.bias"}, {"0.weight", "2.weight"}};
  const auto saved = in_team<two_by_two>([&](auto& t) {
    const on_square net{t, seed{8}};
    nn::save(net, path, names);
    return nn::state_of(net);
  });
  REQUIRE(saved.well());
  const nn::state_dict& own = saved.of(0);
  const nn::state_dict foreign{{"encoder.w", own.at("0.weight")},
                               {"encoder.b", own.at("0.bias")},
                               {"0.weight", own.at("2.weight")},
                               {"2.bias", own.at("2.bias")}};
  CHECK(equal_states(nn::read_state(path), foreign));
  const auto loaded = in_team<line>([&](auto& t) {
    on_line net{t, seed{9}};
    nn::load(net, path, names);
    return nn::state_of(net);
  });
  REQUIRE(loaded.well());
  for (const auto& r : loaded.results) CHECK(equal_states(*r, own));

  const auto refused = [&](const nn::renamed& table, const char* code, const std::vector<std::string>& names_all) {
    const auto all = attempts([&](on_line& net) { nn::load(net, path, table); });
    INFO(all.errors());
    REQUIRE(all.well());
    for (const auto& r : all.results) {
      INFO(r->said);
      CHECK((begins(r->said, code) && r->kept));
      for (const std::string& name : names_all) CHECK(r->said.find(name) != std::string::npos);
    }
  };
  refused({{"decoder.w", "0.weight"}, {"encoder.w", "0.weight"}, {"encoder.b", "0.weight"}, {"no", "2.bias"}},
          "network.renamed",
          {path.string() + ": decoder.w is not there", "0.weight is there twice", "no is not there"});
  refused({{"encoder.b", "2.bias"}}, "network.renamed", {"2.bias is there twice"});
  refused({{"encoder.b", "0.bias"}, {"encoder.b", "1.bias"}}, "network.renamed",
          {"encoder.b is not there, or was renamed before"});
  refused({{"encoder.w", "0.weight"}, {"encoder.b", "0.bais"}, {"0.weight", "2.weight"}}, "network.parameters",
          {"0.bias is missing", "0.bais is unexpected"});
  refused({{"encoder.b", "2.weight"}, {"encoder.w", "1.weight"}}, "network.parameters",
          {"0.bias is missing", "0.weight is Double[4, 6] and not Double[6, 5]",
           "2.weight is Double[6] and not Double[4, 6]", "1.weight is unexpected"});
  const auto apart =
      attempts([&](on_line& net) { nn::load(net, path, net.team()->rank() == 1 ? names : nn::renamed{}); });
  for (const auto& r : apart.results) CHECK((begins(r->said, "agree.fingerprint") && r->kept));
  const std::size_t files = folder.files();
  const auto unsaved =
      attempts([&](on_line& net) { nn::save(net, folder / "new", {{"a", "0.weight"}, {"b", "1.weight"}}); });
  for (const auto& r : unsaved.results)
    CHECK((begins(r->said, "network.renamed") && r->said.find("1.weight is not there") != std::string::npos));
  CHECK(folder.files() == files);
}

TEST_CASE("a file is replaced whole or not at all, through links, and keeps its mode", "[runtime]") {
  const scratch_folder folder;
  const auto path = folder / "weights";
  const nn::state_dict one = small_state(1);
  const nn::state_dict two = small_state(2);
  const auto mode = [](const std::filesystem::path& of) {
    struct stat is{};
    return ::stat(of.c_str(), &is) == 0 ? is.st_mode & 07777 : 0;
  };
  const auto before = ::umask(027);
  nn::write_state(path, one);
  ::umask(before);
  CHECK(mode(path) == 0640);
  REQUIRE(::chmod(path.c_str(), 0604) == 0);
  nn::write_state(path, two);
  CHECK(mode(path) == 0604);
  CHECK(equal_states(nn::read_state(path), two));

  std::filesystem::create_directory(folder / "below");
  std::filesystem::create_symlink("../weights", folder / "below/link");
  std::filesystem::create_symlink("below/link", folder / "link");
  nn::write_state(folder / "link", one);
  CHECK(equal_states(nn::read_state(path), one));
  CHECK((std::filesystem::is_symlink(folder / "link") && std::filesystem::is_symlink(folder / "below/link")));
  std::filesystem::create_symlink("below/new", folder / "ahead");  // to a file that is not there yet
  nn::write_state(folder / "ahead", one);
  CHECK((std::filesystem::is_symlink(folder / "ahead") && equal_states(nn::read_state(folder / "below/new"), one)));
  std::filesystem::create_symlink("loop", folder / "loop");
  const std::string long_name(250, 'w');
  nn::write_state(folder / long_name, one);
  CHECK(equal_states(nn::read_state(folder / long_name), one));
  const std::size_t files = folder.files();

  const auto said = [&](const std::filesystem::path& where) { return error_of([&] { nn::write_state(where, two); }); };
  const auto fifo = folder / "below/fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  for (const std::filesystem::path& what :
       {folder.path, fifo, std::filesystem::path("/dev/null"), std::filesystem::path("/dev/full")})
    CHECK(begins(said(what), "file.kind"));
  CHECK(std::filesystem::is_character_file("/dev/null"));
  for (const std::filesystem::path& what :
       {folder / "nowhere/file", folder / "loop", folder / "weights/file", folder / "weights/",
        folder / (long_name + long_name), std::filesystem::path(), std::filesystem::path("/proc/weights")}) {
    INFO(what.string() << ": " << said(what));
    CHECK(begins(said(what), "file.write"));
    CHECK(said(what).find(what.string()) != std::string::npos);
  }
  CHECK(said(folder / "nowhere/file").find("No such file or directory") != std::string::npos);

  rlimit was{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &was) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit little{100, was.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &little) == 0);
  const std::string full = said(path);
  ::setrlimit(RLIMIT_FSIZE, &was);
  std::signal(SIGXFSZ, handler);
  CHECK(begins(full, "file.space"));
  const nn::state_dict unwritable[]{{{"w", at::Tensor()}},
                                    {{"w", at::empty({2}, at::kMeta)}},
                                    {{"w", at::eye(2).to_sparse()}},
                                    {{"w\xff", at::zeros({2})}},
                                    {{"__metadata__", at::zeros({2})}}};
  for (const nn::state_dict& state : unwritable)
    CHECK(begins(error_of([&] { nn::write_state(path, state); }), "file.write"));
  CHECK(equal_states(nn::read_state(path), one));
  CHECK(folder.files() == files);
}

TEST_CASE(
    "a file is flushed before it takes its place, its folder behind; what cannot be flushed or made changes nothing",
    "[refusal][runtime]") {
  const scratch_folder folder;
  const auto path = folder / "weights";
  std::string order;
  at_flush = [&](bool of_folder) {
    order += fmt::format("{} {}; ", of_folder ? "folder" : "file",
                         std::filesystem::exists(path) ? "in its place" : "beside");
    return 0;
  };
  nn::write_state(path, small_state(1));
  CHECK(order == "file beside; folder in its place; ");
  for (const auto& [reason, code] : {std::pair{ENOSPC, "file.space"}, {EDQUOT, "file.space"}, {EIO, "file.write"}}) {
    at_flush = [why = reason](bool) { return why; };
    CHECK(begins(error_of([&] { nn::write_state(path, small_state(2)); }), code));
  }
  at_flush = [](bool of_folder) { return of_folder ? EINVAL : 0; };  // not every file system can
  nn::write_state(path, small_state(3));
  at_flush = nullptr;
  CHECK(equal_states(nn::read_state(path), small_state(3)));

  const bool root = ::geteuid() == 0;
  REQUIRE(::chmod(folder.path.c_str(), 0555) == 0);
  if (root) REQUIRE(::seteuid(65534) == 0);
  const std::string refused = error_of([&] { nn::write_state(path, small_state(4)); });
  if (root) REQUIRE(::seteuid(0) == 0);
  REQUIRE(::chmod(folder.path.c_str(), 0755) == 0);
  CHECK(begins(refused, "file.write"));
  CHECK(refused.find("Permission denied") != std::string::npos);
  CHECK((equal_states(nn::read_state(path), small_state(3)) && folder.files() == 1));
}

TEST_CASE("two jobs that save to one path leave a whole file at every moment", "[runtime]") {
  const scratch_folder folder;
  const auto path = folder / "weights";
  nn::write_state(path, small_state(0));
  std::atomic<int> at_work{2};
  std::atomic<int> failed{0};
  std::vector<std::thread> jobs;
  for (int job = 1; job <= 2; ++job)
    jobs.emplace_back([&, job] {
      for (int i = 0; i < 30; ++i) failed += error_of([&] { nn::write_state(path, small_state(job)); }) != "none";
      --at_work;
    });
  while (at_work > 0) {
    nn::state_dict seen;
    failed += error_of([&] { seen = nn::read_state(path); }) != "none";
    failed += seen.empty() || !equal_states(seen, small_state(seen.at("0.bias")[0].item<double>()));
  }
  for (auto& j : jobs) j.join();
  CHECK(failed == 0);
  CHECK(folder.files() == 1);
}

TEST_CASE("training goes on from a file as if it had not stopped, and another mesh reads the same bits", "[runtime]") {
  const scratch_folder folder;
  const auto path = folder / "half way";
  const at::Tensor x = global_of({7, 5}, numbers{3});
  const auto step = [&](auto& t, auto& net, torch::optim::SGD& optimizer) {
    optimizer.zero_grad();
    const auto y = net(distribute<by_both>(t, x));
    sum(y * y).backward();
    optimizer.step();
  };
  const auto steps = [&](auto& t, on_square& net, int n) {
    torch::optim::SGD optimizer(net.parameters(), torch::optim::SGDOptions(0.01));
    for (int i = 0; i < n; ++i) step(t, net, optimizer);
  };
  const auto ran = in_team<two_by_two>([&](auto& t) {
    on_square net{t, seed{3}};
    steps(t, net, 2);
    nn::save(net, path);
    const nn::state_dict half = nn::state_of(net);
    steps(t, net, 2);
    on_square again{t, seed{4}};
    nn::load(again, path);
    const bool same_half = equal_states(nn::state_of(again), half);
    steps(t, again, 2);
    return std::make_pair(half, same_half && equal_states(nn::state_of(again), nn::state_of(net)) &&
                                    !equal_states(half, nn::state_of(net)));
  });
  INFO(ran.errors());
  REQUIRE(ran.well());
  for (const auto& r : ran.results) CHECK(r->second);
  const auto read = in_team<line>([&](auto& t) {
    on_line net{t, seed{5}};
    nn::load(net, path);
    return nn::state_of(net);
  });
  REQUIRE(read.well());
  for (const auto& r : read.results) CHECK(equal_states(*r, ran.of(0).first));
}

TEST_CASE(
    "a run that is saved goes on with the masks that it would have drawn, on another mesh too, and serial weights need "
    "not count them",
    "[runtime]") {
  using dropping_on_square =
      nn::sequential<by_both, nn::linear<6>, nn::dropout<>, nn::linear<4>, nn::dropout<probability<1, 4>>>;
  using dropping_on_line =
      nn::sequential<by_queue, nn::linear<6>, nn::dropout<>, nn::linear<4>, nn::dropout<probability<1, 4>>>;
  const scratch_folder folder;
  const auto path = folder / "masks";
  const at::Tensor x = global_of({7, 5}, numbers{3});
  const auto ran = in_team<two_by_two>([&](auto& t) {
    dropping_on_square net{t, seed{3}};
    const auto run = [&](const dropping_on_square& of) { return full_tensor(of(distribute<by_both>(t, x))); };
    for (int i = 0; i < 3; ++i) run(net);
    net.eval();
    run(net);
    net.train();
    nn::save(net, path);
    const at::Tensor went_on[]{run(net), run(net)};
    dropping_on_square again{t, seed{4}};  // the masks' keys come with the file
    nn::load(again, path);
    nn::state_dict state = nn::state_of(again);
    bool well = state.at("1.draws").item<index_t>() == 3 && state.at("3.draws").item<index_t>() == 3;
    for (const at::Tensor& y : went_on) well = well && at::equal(run(again), y);
    for (const char* key : {"1.draws", "3.draws", "1.key", "3.key"}) state.erase(key);
    nn::assign(again, state);
    dropping_on_square own{t, seed{4}};  // of a file that says how often, and not by which key
    const at::Tensor key = nn::state_of(own).at("1.key");
    state["1.draws"] = state["3.draws"] = at::full({}, 3, at::kLong);
    nn::assign(own, state);
    well = well && at::equal(nn::state_of(own).at("1.key"), key) && !at::equal(nn::state_of(again).at("1.key"), key) &&
           !at::equal(run(own), went_on[0]);
    well = well && nn::state_of(again).at("1.draws").item<index_t>() == 5 && !at::equal(went_on[0], went_on[1]);
    return std::make_pair(well, went_on[0]);
  });
  INFO(ran.errors());
  REQUIRE(ran.well());
  for (const auto& r : ran.results) CHECK(r->first);
  const at::Tensor& went_on = ran.of(0).second;
  CHECK(satisfied<line>([&](auto& t) {
          dropping_on_line net{t, seed{8}};
          nn::load(net, path);
          const at::Tensor y = full_tensor(net(distribute<by_queue>(t, x)));
          return at::equal(y != 0, went_on != 0) && at::allclose(y, went_on, 1e-12, 1e-12);
        }) == 3);
}

TEST_CASE("a file's sum is XXH64, whatever pieces it is taken in", "[runtime]") {
  const auto sum_of = [](std::string_view bytes, std::size_t piece) {
    tessera::detail::xxh64 sum;
    for (std::size_t at = 0; at < bytes.size(); at += piece)
      sum.add(bytes.data() + at, std::min(piece, bytes.size() - at));
    return sum.value();
  };
  CHECK(sum_of("", 1) == 0xef46db3751d8e999u);
  CHECK(sum_of("a", 1) == 0xd24ec4f1a98c6e5bu);
  CHECK(sum_of("abc", 3) == 0x44bc2cf5ad770999u);
  const std::string_view long_one = "Nobody inspects the spammish repetition";
  for (std::size_t piece = 1; piece <= long_one.size(); ++piece) CHECK(sum_of(long_one, piece) == 0xfbcea83c8a378bf1u);
  const scratch_folder folder;
  nn::write_state(folder / "summed", small_state(1));
  CHECK(bytes_of_file(folder / "summed").find("xxh64") != std::string::npos);
}

TEST_CASE("a saved file tells the format that other loaders ask for, and nothing that they do not know", "[runtime]") {
  const scratch_folder folder;
  const auto said = [](const std::filesystem::path& path) {
    const std::string bytes = bytes_of_file(path);
    std::size_t length = 0;
    for (std::size_t i = 8; i > 0; --i) length = length << 8 | static_cast<unsigned char>(bytes[i - 1]);
    return nlohmann::json::parse(bytes.substr(8, length))["__metadata__"];
  };
  nn::write_state(folder / "state", small_state(1));
  const auto saved = in_team<two_by_two>([&](auto& t) {
    const on_square net{t, seed{8}};
    nn::save(net, folder / "net");
    return true;
  });
  REQUIRE(saved.well());
  for (const char* name : {"state", "net"}) {
    const nlohmann::json words = said(folder / name);
    CHECK((words.size() == 2 && words["format"] == "pt" && words["xxh64"].is_string()));
  }
}

TEST_CASE("saving and loading hold one whole tensor at a time on the first worker, and on the others their parts",
          "[runtime]") {
  using wide = tensor<partition<two_by_two, blocks<height>, blocks<breadth>>, shape<weights_batch, dim<64>>, double>;
  using stack = nn::sequential<wide, nn::linear<96>, nn::relu, nn::linear<64>, nn::relu, nn::linear<96>, nn::relu,
                               nn::linear<32>>;
  constexpr std::int64_t largest = 64 * 96 * 8, little = 2048;
  const scratch_folder folder;
  const auto path = folder / "large";
  const auto all = in_team<two_by_two>([&](auto& t) {
    const stack net{t, seed{3}};
    stack other{t, seed{4}};
    std::int64_t part = 0;
    for (const at::Tensor& w : net.parameters()) part = std::max(part, static_cast<std::int64_t>(w.nbytes()));
    const auto peak_of = [](auto&& f) {
      memory_count count;
      f();
      return count.peak();
    };
    const std::int64_t saving = peak_of([&] { nn::save(net, path); });
    const std::int64_t loading = peak_of([&] { nn::load(other, path); });
    const bool same = equal_states(nn::state_of(net), nn::state_of(other));
    return std::array<std::int64_t, 4>{part, saving, loading, same};
  });
  INFO(all.errors());
  REQUIRE(all.well());
  for (int r = 0; r < 4; ++r) {
    const auto [part, saving, loading, same] = all.of(r);
    INFO("worker " << r << " saving " << saving << " loading " << loading << " part " << part);
    CHECK(same);
    CHECK(part < largest);
    CHECK(saving <= (r == 0 ? largest : part) + little);
    CHECK(loading <= (r == 0 ? largest + part : part) + little);
  }
}

TEST_CASE("weights whose copies have drifted are not saved", "[refusal]") {
  const scratch_folder folder;
  const auto path = folder / "drifted";
  const auto said = in_team<two_by_two>([&](auto& t) {
    const on_square net{t, seed{3}};
    for (at::Tensor& w : net.parameters()) {
      const at::NoGradGuard step;
      // the second bias, cut over breadth alone
      if (w.dim() == 1 && w.numel() == 2) w.add_(t.template coordinate<height>());
    }
    return error_of([&] { nn::save(net, path); });
  });
  REQUIRE(said.well());
  for (const auto& r : said.results) CHECK((begins(*r, "agree.copies") && r->find("2.bias]") != std::string::npos));
  CHECK(folder.files() == 0);
}
