// Answers plan files: who sends which box to whom, and how many bytes that is. Nothing is launched.
#include <tessera/inspect/json.hpp>
#include <tessera/inspect/svg_plan.hpp>

#include <CLI/CLI.hpp>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "plan_file.hpp"

namespace {

using namespace planning;

struct wanted {
  std::vector<std::string> files;
  std::string svg;  ///< folder, or empty
  std::string only;
  bool text = false;
};

std::string name_of(const plan_case& c) { return c.id.is_string() ? c.id.get<std::string>() : c.id.dump(); }

std::string as_text(const plan_case& c) {
  std::string s = name_of(c) + ": ";
  if (!c.refused.empty()) return s + "refused\n  " + c.why + "\n";
  s += transfer_text(c.plan());
  return s.insert(s.find('\n') + 1, fmt::format("  from {}\n  to   {}\n", text_of(c.from), text_of(c.to)));
}

std::string as_json(const plan_case& c) {
  const std::string id = "\"id\": " + c.id.dump();
  if (c.refused.empty()) return plan_json(c.plan(), c.world, c.element_bytes, id);
  return fmt::format("{{{}, \"refused\": {}, \"why\": {}}}", id, json_string(c.refused), json_string(c.why));
}

/// Writes the picture of a case that is not refused: its id names the file, with - for what file names should not hold.
void draw(const plan_case& c, const std::filesystem::path& folder) {
  if (!c.refused.empty()) return;
  std::string name = name_of(c);
  for (char& letter : name)
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0 && letter != '_' && letter != '.') letter = '-';
  std::error_code none;
  std::filesystem::create_directories(folder, none);
  if (!std::filesystem::is_directory(folder))
    throw std::runtime_error(folder.string() + ": is no folder; name another with --svg");
  std::ofstream out(folder / (name + ".svg"));
  out << svg_of(c.plan(), name_of(c));
  if (!out.flush()) throw std::runtime_error((folder / (name + ".svg")).string() + ": cannot be written");
}

std::vector<plan_case> cases_in(const std::string& file, lists& keep) {
  std::ifstream in(file);
  if (!in) throw error(refusal{code::file_misread}, "cannot be opened");
  try {
    return read_cases(json::parse(in), keep);
  } catch (const json::parse_error& e) {
    throw error(refusal{code::file_misread}, std::string("is not JSON: ") + e.what());
  }
}

int answer(const wanted& job) {
  bool readable = true;
  bool found = job.only.empty();
  for (const std::string& file : job.files) {
    lists keep;
    std::vector<plan_case> cases;
    try {
      cases = cases_in(file, keep);
    } catch (const error& fault) {
      fmt::print(stderr, "plan: {}: {}\n", file, fault.what());
      readable = false;
    }
    for (const plan_case& c : cases) {
      if (!job.only.empty() && name_of(c) != job.only) continue;
      found = true;
      if (!job.svg.empty()) draw(c, job.svg);
      if (job.text) fmt::print("{}\n", as_text(c));
      else fmt::print("{}\n", as_json(c));
    }
  }
  if (readable && !found) fmt::print(stderr, "plan: no case has the id {}\n", job.only);
  return readable && found ? 0 : 2;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Answers the cases of plan files: one JSON line a case, with what each worker receives and from whom.\n"
      "A case that means nothing answers its code and why. A file that is no plan file ends in status 2.",
      "scripts/plan"};
  wanted job;
  app.add_option("FILE", job.files, "plan files (docs/inspect.md says how they are written)")->required();
  app.add_option("--svg", job.svg, "write a picture of each case into this folder")->type_name("DIR");
  app.add_flag("--text", job.text, "print layouts and messages for people instead of JSON");
  app.add_option("--only", job.only, "answer this case alone")->type_name("ID");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  try {
    return answer(job);
  } catch (const std::exception& e) {
    fmt::print(stderr, "plan: {}\n", e.what());
    return 1;
  }
}
