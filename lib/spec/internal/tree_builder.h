#pragma once

/// Makes a Value from the events of a parser, within the limits of parse.h. Duplicate keys are
/// noted as problems and the first one is kept; what breaks a limit makes a method return false,
/// with the reason in `stop()`, and ends the parse.

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "spec/problem.h"
#include "spec/value.h"

namespace fl::spec::internal {

class TreeBuilder {
 public:
  /// The next event belongs to a map and is a key.
  bool AwaitsKey() const;
  size_t depth() const { return open_.size(); }
  /// The path of what comes next.
  std::string Path() const;

  void Key(std::string key, int line);
  /// The key "<<" of YAML: the next value is merged into the map when that ends.
  void MergeKey(int line);

  [[nodiscard]] bool Add(Value value, int line);
  [[nodiscard]] bool BeginList(int line);
  [[nodiscard]] bool BeginMap(int line);
  /// Ends the innermost list or map and puts it where it belongs. The pointer to it is good until
  /// the next call; nullptr where it was dropped with a duplicate key.
  const Value* End();

  /// Notes a problem at the path of what comes next.
  void Report(int line, std::string message);

  /// The finished tree; null where there were no events.
  Value TakeRoot() { return std::move(root_); }
  Problems& problems() { return problems_; }
  const Problem& stop() const { return stop_; }

 private:
  struct Open {
    Value value;
    bool has_key = false;
    bool key_is_merge = false;
    bool key_is_duplicate = false;
    std::string key;
    int key_line = 0;
    bool merge_seen = false;
    std::vector<Value> merges;
  };

  bool CountOne(int line);
  const Value* Attach(Value value, int line);
  void ApplyMerges(Open& map);

  std::vector<Open> open_;
  Value root_;
  size_t values_ = 0;
  Problems problems_;
  Problem stop_;
};

/// How many values the tree has, and bytes of text.
struct TreeSize {
  size_t values = 0;
  size_t bytes = 0;
};
TreeSize SizeOf(const Value& value);

}  // namespace fl::spec::internal
