#include "spec/yaml_tree.h"

#include <string>
#include <utility>
#include <vector>

#include "spec/internal/yaml_reader.h"
#include "spec/problem.h"

namespace fl::spec {

base::Result<Value> ParseYamlTree(std::string_view text, std::string_view source) {
  std::vector<internal::Tree> trees = internal::ReadYaml(text);
  Problems problems;
  for (internal::Tree& tree : trees) {
    for (Problem& problem : tree.problems) problems.push_back(std::move(problem));
  }
  if (problems.empty() && trees.size() > 1) {
    problems.push_back({.line = trees[1].root.line(),
                        .message = "a second document begins: one is expected in this file"});
  }
  for (Problem& problem : problems) problem.source = std::string(source);
  FL_RETURN_IF_ERROR(ToStatus(problems));
  return trees.empty() ? Value() : std::move(trees.front().root);
}

}  // namespace fl::spec
