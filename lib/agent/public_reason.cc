#include "agent/public_reason.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

namespace fl::agent {
namespace {

constexpr std::string_view kOpening = " \t\n\"'`(=[<,;";
constexpr std::string_view kClosing = " \t\n\"'`)=]>,;:";

bool StartsWord(std::string_view text, size_t at) {
  return at == 0 || kOpening.find(text[at - 1]) != std::string_view::npos ||
         text.substr(0, at).ends_with("file:") || text.substr(0, at).ends_with("file://");
}

/// Takes `folder` and the slash after it away wherever a word starts with it.
void Strip(std::string& text, std::string folder) {
  if (!folder.ends_with('/')) folder += '/';
  for (size_t at = text.find(folder); at != std::string::npos; at = text.find(folder, at)) {
    if (StartsWord(text, at)) {
      text.erase(at, folder.size());
    } else {
      at += folder.size();
    }
  }
}

/// Leaves the last name of each absolute path. One in quotes may have blanks.
std::string StripAbsolute(std::string_view text) {
  std::string kept;
  size_t at = 0;
  while (at < text.size()) {
    if (text[at] != '/' || !StartsWord(text, at)) {
      kept += text[at++];
      continue;
    }
    size_t end = text.find_first_of(kClosing, at);
    if (at > 0 && (text[at - 1] == '"' || text[at - 1] == '\'' || text[at - 1] == '`')) {
      end = text.find(text[at - 1], at);
    }
    std::string_view path = text.substr(at, end == std::string_view::npos ? end : end - at);
    at += path.size();
    while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
    kept += path == "/" ? path : path.substr(path.rfind('/') + 1);
  }
  return kept;
}

}  // namespace

std::string PublicReason(const base::Status& why, const std::vector<base::Path>& local) {
  std::string text = why.message();
  if (!why.hint().empty()) text += "; " + why.hint();
  // The longest first: one folder may be in another.
  std::vector<std::string> folders;
  for (const base::Path& path : local) {
    std::error_code error;
    for (const base::Path& folder :
         {path.parent_path(), std::filesystem::absolute(path, error).parent_path()}) {
      if (folder.has_filename() && folder != "." && folder != "..") {
        folders.push_back(folder.string());
      }
    }
  }
  std::sort(folders.begin(), folders.end(),
            [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
  for (const std::string& folder : folders) Strip(text, folder);
  return StripAbsolute(text);
}

}  // namespace fl::agent
