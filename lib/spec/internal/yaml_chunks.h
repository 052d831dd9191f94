#pragma once

/// The text of a YAML stream before it is parsed: encoding, line breaks, and where documents end.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "spec/problem.h"

namespace fl::spec::internal {

/// Copies `text` to `out` without a byte order mark, and with "\n" for every line break. What YAML
/// does not allow in any place is a problem: too large a text, other encodings than UTF-8, control
/// characters.
Problems NormalizeText(std::string_view text, std::string& out);

/// One document, with its "---" line and directives, if any.
struct YamlChunk {
  std::string_view text;
  int first_line = 1;
  /// What is wrong with the directives in front of the document, e.g. another version of YAML.
  Problems problems;
  /// By line of the text, from 0: the length of the white space in front, where it has a tab in it.
  std::map<int, int> tab_margins;

  /// The first character of content is "{".
  bool LooksLikeJson() const;
  /// Before `column` of `line` (both from 0) stands nothing but white space with a tab in it.
  bool TabInIndentation(int line, int column) const;
};

/// Cuts at every line that begins with "---" or "..." and a blank or nothing. In YAML these end a
/// document wherever they stand at the margin, so that no parser is needed to find them; indented
/// ones belong to the text around them. Chunks without content are left out.
std::vector<YamlChunk> SplitDocuments(std::string_view text);

}  // namespace fl::spec::internal
