#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/file.h"

namespace fl::base {

/// A folder of a test's own under $TMPDIR (else /tmp), removed with all in it at the end.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "fl-test-XXXXXX").string();
    FL_CHECK(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TemporaryDirectory() {
    const Status removed = RemoveTree(path_);
    FL_CHECK_MSG(removed.ok(), removed.ToString());
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const Path& path() const { return path_; }
  Path operator/(const Path& name) const { return path_ / name; }

 private:
  Path path_;
};

}  // namespace fl::base
