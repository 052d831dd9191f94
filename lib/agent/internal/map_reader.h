#pragma once

/// Reading a configuration file field by field, with every problem noted at its line.

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "spec/problem.h"
#include "spec/value.h"

namespace fl::agent::internal {

/// Takes the fields of one map. Fields of another type are problems, and after Finish those that
/// nobody asked for too. Targets of absent or null fields keep their values. One thread; value and
/// problems outlive the reader.
class MapReader {
 public:
  /// `path` is where the map stands ("trainers.my-trainer"; "" for the document); `folder` is where
  /// relative paths start.
  MapReader(const spec::Value& value, std::string path, std::string source, base::Path folder,
            spec::Problems* problems);

  void Text(std::string_view key, std::string* out);
  /// A path, made absolute from the folder.
  void File(std::string_view key, base::Path* out);
  void Bool(std::string_view key, bool* out);
  /// A whole number in [low, high].
  void Integer(std::string_view key, int64_t low, int64_t high, int64_t* out);
  /// A number in (0, high].
  void Positive(std::string_view key, double high, double* out);
  void TextList(std::string_view key, std::vector<std::string>* out);
  void TextMap(std::string_view key, std::map<std::string, std::string>* out);
  /// Calls `read` with a reader of the map at `key`, where there is one.
  void Map(std::string_view key, const std::function<void(MapReader&)>& read);
  /// The same for each map of a list.
  void MapList(std::string_view key, const std::function<void(MapReader&)>& read);
  /// The same for each entry of this map, whose keys are names.
  void EachMap(const std::function<void(const std::string& name, MapReader&)>& read);

  /// Notes a problem with the field `key` of this map ("": with the map).
  void Fail(std::string_view key, std::string message);
  bool Has(std::string_view key) const;
  const base::Path& folder() const { return folder_; }

  /// Notes the fields that nobody asked for.
  void Finish();

 private:
  const spec::Value* Find(std::string_view key);
  std::string PathOf(std::string_view key) const;
  void WrongType(std::string_view key, const spec::Value& value, std::string_view wanted);
  void ReadChild(const spec::Value& child, std::string path,
                 const std::function<void(MapReader&)>& read);

  const spec::Value& value_;
  const std::string path_;
  const std::string source_;
  const base::Path folder_;
  spec::Problems* const problems_;
  std::set<std::string, std::less<>> asked_;
};

}  // namespace fl::agent::internal
