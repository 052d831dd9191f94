#include "agent/public_reason.h"

#include <gtest/gtest.h>

namespace fl::agent {
namespace {

std::string Public(const std::string& message, const std::string& hint = "") {
  return PublicReason(base::FailedPrecondition(message, hint),
                      {"/var/lib/fl agent/work/site-1", "/data/Study 7/train.csv", "rel/data",
                       "programs/train.py"});
}

TEST(PublicReason, OfPathsOnlyTheNamesAreLeft) {
  const std::pair<const char*, const char*> cases[] = {
      {"open /home/someone/secret/train.csv: No such file", "open train.csv: No such file"},
      {"open /data/Study 7/train.csv: No such file", "open train.csv: No such file"},
      {"file:///data/Study 7/train.csv has no column", "file:train.csv has no column"},
      {"\"/mnt/a b/c d.csv\": line 3", "\"c d.csv\": line 3"},
      {"/x/y.csv:3: bad (see /x/z)", "y.csv:3: bad (see z)"},
      {"the disk of /tmp/ is full", "the disk of tmp is full"},
      {"start programs/train.py: no", "start train.py: no"},
      {"open rel/data/labels", "open data/labels"},
      {"its log is in /var/lib/fl agent/work/site-1/trainer-mine.log at the agent",
       "its log is in site-1/trainer-mine.log at the agent"},
  };
  for (const auto& [message, left] : cases) EXPECT_EQ(Public(message), left);
}

TEST(PublicReason, WhatIsNoPathStays) {
  for (const char* message : {"tensor \"dense/kernel\" has shape [3,2], the model has [2,3]",
                              "exit status 1", "https://fl.example.org/v1/jobs answered 503",
                              "3/4 of the and/or", "a / b", "sha256:ab/+x="}) {
    EXPECT_EQ(Public(message), message);
  }
}

TEST(PublicReason, TheHintFollowsTheMessage) {
  EXPECT_EQ(Public("it crashed", "look at /a/b.log"), "it crashed; look at b.log");
  EXPECT_EQ(Public("it crashed"), "it crashed");
}

}  // namespace
}  // namespace fl::agent
