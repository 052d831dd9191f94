#include "cli/input.h"

#include <algorithm>
#include <array>

namespace fl::cli {
namespace {

base::Result<std::string> ReadAll(std::istream& in, uint64_t limit) {
  std::string text;
  std::array<char, 65536> buffer;
  while (in) {
    in.read(buffer.data(), buffer.size());
    text.append(buffer.data(), static_cast<size_t>(in.gcount()));
    if (text.size() > limit) {
      return base::InvalidArgument("standard input is longer than " + std::to_string(limit) +
                                   " bytes");
    }
  }
  return text;
}

base::Result<std::vector<std::string>> ExpandFolders(const std::vector<std::string>& files) {
  std::vector<std::string> expanded;
  for (const std::string& file : files) {
    std::error_code error;
    if (file == "-" || !std::filesystem::is_directory(file, error)) {
      expanded.push_back(file);
      continue;
    }
    std::vector<std::string> names;
    for (std::filesystem::directory_iterator it(file, error), end; !error && it != end;
         it.increment(error)) {
      const std::string extension = it->path().extension().string();
      if (extension == ".yaml" || extension == ".yml" || extension == ".json") {
        names.push_back(it->path().string());
      }
    }
    if (error) return base::InvalidArgument("read folder " + file + ": " + error.message());
    if (names.empty()) {
      return base::InvalidArgument("folder " + file + " has no *.yaml, *.yml or *.json");
    }
    std::sort(names.begin(), names.end());
    expanded.insert(expanded.end(), names.begin(), names.end());
  }
  return expanded;
}

}  // namespace

base::Status AboutInput(const base::Status& status) {
  switch (status.code()) {
    case base::Code::kNotFound:
    case base::Code::kPermissionDenied:
    case base::Code::kOutOfRange:
    case base::Code::kDataLoss:
      return base::InvalidArgument(status.message(), status.hint());
    default:
      return status;
  }
}

base::Result<std::string> ReadInput(Context& context, const std::string& file, uint64_t limit) {
  if (file == "-") return ReadAll(context.in, limit);
  base::Result<std::string> text = base::ReadFile(file, limit);
  if (!text.ok()) return AboutInput(text.status());
  return text;
}

base::Result<spec::ParseResult> ReadObjects(Context& context, const std::vector<std::string>& files,
                                            spec::AgentKeys keys) {
  FL_ASSIGN_OR_RETURN(const std::vector<std::string> expanded, ExpandFolders(files));
  if (std::count(expanded.begin(), expanded.end(), "-") > 1) {
    return base::InvalidArgument("standard input (-) can be read only once");
  }
  std::vector<std::string> texts;
  for (const std::string& file : expanded) {
    FL_ASSIGN_OR_RETURN(std::string text, ReadInput(context, file));
    texts.push_back(std::move(text));
  }
  std::vector<spec::NamedText> named;
  for (size_t i = 0; i < expanded.size(); ++i) named.push_back({expanded[i], texts[i]});
  return spec::ParseYaml(named, keys);
}

Option FilenameFlag(std::vector<std::string>* to) {
  return {.names = "-f,--filename",
          .value = "FILE",
          .help = "YAML or JSON; a folder for all in it; - for standard input",
          .to = to,
          .required = true,
          .completes = Completes::kFile};
}

}  // namespace fl::cli
