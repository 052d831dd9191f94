#include "spec/internal/yaml_chunks.h"

#include <algorithm>

#include "spec/internal/utf8.h"
#include "spec/parse.h"

namespace fl::spec::internal {
namespace {

constexpr std::string_view kBlanks = " \t";

/// "---" or "..." as a marker: at the margin, followed by a blank or nothing.
bool IsMarker(std::string_view line, std::string_view marker) {
  if (!line.starts_with(marker)) return false;
  return line.size() == 3 || line[3] == ' ' || line[3] == '\t';
}

/// Nothing but white space or a comment.
bool IsVoid(std::string_view line) {
  const size_t at = line.find_first_not_of(kBlanks);
  return at == std::string_view::npos || line[at] == '#';
}

/// The parser of kubectl knows these two; a later version of YAML reads some scalars differently.
bool IsKnownDirective(std::string_view line) {
  return line == "%YAML 1.1" || line.starts_with("%TAG ");
}

}  // namespace

Problems NormalizeText(std::string_view text, std::string& out) {
  if (text.size() > kMaxTextBytes) {
    return {{"", 0, "",
             "the text has " + std::to_string(text.size()) + " bytes, at most " +
                 std::to_string(kMaxTextBytes) + " are allowed"}};
  }
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  out.clear();
  out.reserve(text.size() + 1);
  int line = 1;
  while (!text.empty()) {
    const CodePoint next = NextCodePoint(text);
    if (!next.valid) return {{"", line, "", "the text is not UTF-8: save the file as UTF-8"}};
    if (!IsPrintable(next.value) && next.value != 0xFEFF) {
      return {{"", line, "", "there is a control character, which YAML does not allow"}};
    }
    if (next.value == '\r') {
      if (text.size() > 1 && text[1] == '\n') text.remove_prefix(1);
      out += '\n';
      ++line;
    } else {
      if (next.value == '\n') ++line;
      out += text.substr(0, next.length);
    }
    text.remove_prefix(next.length);
  }
  return {};
}

bool YamlChunk::LooksLikeJson() const {
  const size_t at = text.find_first_not_of(" \t\n");
  return at != std::string_view::npos && text[at] == '{';
}

bool YamlChunk::TabInIndentation(int line, int column) const {
  const auto margin = tab_margins.find(line);
  return margin != tab_margins.end() && column <= margin->second + 1;
}

std::vector<YamlChunk> SplitDocuments(std::string_view text) {
  std::vector<YamlChunk> chunks;
  YamlChunk chunk;
  size_t chunk_begin = 0;
  bool has_marker = false;
  bool has_content = false;
  int directive_line = 0;
  const auto cut = [&](size_t at, int line) {
    if (directive_line > 0 && !has_marker && chunk.problems.empty()) {
      chunk.problems.push_back({"", directive_line, "", "no --- follows the directive"});
    }
    chunk.text = text.substr(chunk_begin, at - chunk_begin);
    if (has_content || !chunk.problems.empty()) chunks.push_back(std::move(chunk));
    chunk = YamlChunk{.text = {}, .first_line = line, .problems = {}, .tab_margins = {}};
    chunk_begin = at;
    has_marker = false;
    has_content = false;
    directive_line = 0;
  };
  size_t at = 0;
  for (int line = 1; at < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view content = text.substr(at, end - at);
    const size_t next = std::min(end + 1, text.size());
    if (IsMarker(content, "...")) {
      // What follows on the line can only be a comment; if it is not, the parser will say so.
      const bool is_void = IsVoid(content.substr(3));
      cut(is_void ? next : at, is_void ? line + 1 : line);
      has_content = !is_void;
    } else if (IsMarker(content, "---")) {
      // Directives and comments in front belong to this document.
      if (has_content || has_marker) cut(at, line);
      has_marker = true;
      has_content = !IsVoid(content.substr(3));
    } else if (content.starts_with("%")) {
      if (has_content) {
        chunk.problems.push_back({"", line, "", "a line cannot begin with % here: indent it"});
      } else if (has_marker || !IsKnownDirective(content)) {
        chunk.problems.push_back({"", line, "",
                                  "the directive " + std::string(content.substr(0, 32)) +
                                      " is not known here: remove the line"});
      }
      directive_line = line;
    } else if (!IsVoid(content)) {
      has_content = true;
    }
    const size_t margin = std::min(content.find_first_not_of(kBlanks), content.size());
    if (content.substr(0, margin).find('\t') != std::string_view::npos) {
      chunk.tab_margins[line - chunk.first_line] = static_cast<int>(margin);
    }
    at = next;
  }
  cut(text.size(), 0);
  return chunks;
}

}  // namespace fl::spec::internal
