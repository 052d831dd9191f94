#include "aggregator/evaluator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "base/testing/temporary_directory.h"

namespace fl::aggregator {
namespace {

using base::Code;
using base::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class EvaluationProgramsTest : public ::testing::Test {
 protected:
  base::Result<EvaluationPrograms> Read(const std::string& text) {
    EXPECT_THAT(base::WriteFileAtomically(path, text), base::IsOk());
    return ReadEvaluationPrograms(path);
  }
  base::TemporaryDirectory folder;
  const base::Path path = folder / "trainers.yaml";
};

TEST_F(EvaluationProgramsTest, OneFileIsReadAlikeHoweverItIsWritten) {
  for (const char* text :
       {"# ours\nmine:\n  command: [python3, train.py]\n  worker: true\n  timeoutSeconds: 2.5\n"
        "  env: {SEED: '7'}\n  workingDirectory: programs\n",
        R"({"mine": {"command": ["python3", "train.py"], "worker": true, "timeoutSeconds": 2.5,
            "env": {"SEED": "7"}, "workingDirectory": "programs"}})",
        "trainers:\n  mine: &m\n    command:\n    - python3\n    - train.py\n    worker: yes\n"
        "    timeoutSeconds: 2.5\n    env: {SEED: \"7\"}\n    workingDirectory: programs\n"}) {
    ASSERT_OK_AND_ASSIGN(const EvaluationPrograms programs, Read(text));
    ASSERT_EQ(programs.size(), 1u) << text;
    const trainer::ProcessTrainerOptions& mine = programs.at("mine");
    EXPECT_THAT(mine.command, ElementsAre("python3", "train.py"));
    EXPECT_TRUE(mine.worker);
    EXPECT_EQ(mine.time_limit, std::chrono::milliseconds(2500));
    EXPECT_EQ(mine.env.at("SEED"), "7");
    EXPECT_EQ(mine.working_directory, folder / "programs");
  }
  ASSERT_OK_AND_ASSIGN(const EvaluationPrograms named, Read("trainers: {command: [a]}"));
  EXPECT_THAT(named.at("trainers").command, ElementsAre("a"));
}

TEST_F(EvaluationProgramsTest, WhatIsWrongIsNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"a: 1\na: 2\n", "trainers.yaml:2"},
      {"- mine\n", "must be a map"},
      {"mine: {}\n", "command"},
      {"mine: {command: []}\n", "mine.command"},
      {"mine: {command: [a], timeoutSeconds: -1}\n", "mine.timeoutSeconds"},
      {"mine: {command: [a], timeoutSeconds: soon}\n", "timeoutSeconds"},
      {"mine: {command: a b}\n", "command"},
  };
  for (const auto& [text, names] : cases) {
    EXPECT_THAT(Read(text), StatusIs(Code::kInvalidArgument, HasSubstr(names))) << text;
  }
}

}  // namespace
}  // namespace fl::aggregator
