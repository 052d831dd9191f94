#include "agent/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "base/testing/temporary_directory.h"

namespace fl::agent {
namespace {

using base::Code;
using base::IsOk;
using base::StatusIs;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

const Flags kFromFile{.config = "/etc/fl/agent.yaml"};
constexpr std::string_view kSmallest = R"(
client: hospital-a
aggregator: https://fl.example.org:8443
keyFile: a.key
)";

TEST(AgentConfig, ReadsAWholeFile) {
  ASSERT_OK_AND_ASSIGN(const Config config, ParseConfig(R"(
client: hospital-a
aggregator: https://fl.example.org:8443/
caFile: ca.crt
keyFile: /keys/a.key
joinTokenFile: token
dataset: file:train.csv?label=y
workDir: /var/lib/fl-agent
trainers:
  my-trainer: {command: [python3, train.py], worker: true, timeoutSeconds: 600, env: {A: b}}
  quick: {command: [./quick], timeoutSeconds: 0.5, workingDirectory: src}
require: {secureAggregation: true, differentialPrivacy: false, minimumCohort: 5}
logFormat: json
logLevel: debug
)",
                                                        kFromFile));
  EXPECT_EQ(config.aggregator, "https://fl.example.org:8443");
  EXPECT_EQ(config.ca_file, "/etc/fl/ca.crt");
  EXPECT_EQ(config.work_dir, "/var/lib/fl-agent");
  EXPECT_THAT(config.clients,
              ElementsAre(ClientConfig{.client = base::ClientName("hospital-a"),
                                       .key_file = "/keys/a.key",
                                       .join_token_file = "/etc/fl/token",
                                       .dataset = "file:/etc/fl/train.csv?label=y"}));
  ASSERT_THAT(config.trainers, SizeIs(2));
  EXPECT_EQ(config.trainers.at("my-trainer"), (TrainerConfig{.command = {"python3", "train.py"},
                                                             .worker = true,
                                                             .time_limit = std::chrono::minutes(10),
                                                             .env = {{"A", "b"}}}));
  EXPECT_EQ(config.trainers.at("quick").time_limit, std::chrono::milliseconds(500));
  EXPECT_EQ(config.trainers.at("quick").working_directory, "/etc/fl/src");
  EXPECT_EQ(config.require, (Floors{.secure_aggregation = true, .minimum_cohort = 5}));
  EXPECT_EQ(config.log_format, obs::LogFormat::kJson);
  EXPECT_EQ(config.log_level, obs::Level::kDebug);
}

TEST(AgentConfig, ReadsSeveralClients) {
  ASSERT_OK_AND_ASSIGN(const Config config, ParseConfig(R"(
aggregator: https://a
agents:
- {client: a, keyFile: a.key, dataset: 'file:data#partition=iid,parts=2,index=0,seed=1'}
- {client: b, certificateFile: b.crt, certificateKeyFile: b.key, dataset: 's3://bucket/x'}
)",
                                                        kFromFile));
  ASSERT_THAT(config.clients, SizeIs(2));
  EXPECT_EQ(config.clients[0].dataset, "file:/etc/fl/data#partition=iid,parts=2,index=0,seed=1");
  EXPECT_EQ(config.clients[1].certificate_file, "/etc/fl/b.crt");
  EXPECT_EQ(config.clients[1].dataset, "s3://bucket/x");
}

TEST(AgentConfig, FlagsAloneDo) {
  ASSERT_OK_AND_ASSIGN(const Config config, ParseConfig("", {.client = "a",
                                                             .aggregator = "http://127.0.0.1:80",
                                                             .key = "/a.key",
                                                             .dataset = "file:here.csv",
                                                             .insecure = true}));
  EXPECT_EQ(config.clients[0].dataset, "file:here.csv");  // from the working folder
  EXPECT_EQ(config.work_dir, std::filesystem::absolute("fl-agent"));
}

TEST(AgentConfig, FlagsOverrideTheFile) {
  Flags flags = kFromFile;
  flags.client = "b";
  flags.aggregator = "https://other";
  flags.certificate = "/b.crt";
  flags.certificate_key = "/b.key";
  flags.log_level = "error";
  flags.work_dir = "/w";
  ASSERT_OK_AND_ASSIGN(const Config config, ParseConfig(kSmallest, flags));
  EXPECT_EQ(config.clients[0].client.str(), "b");
  EXPECT_EQ(config.clients[0].key_file, "");  // a certificate replaces it
  EXPECT_EQ(config.aggregator, "https://other");
  EXPECT_EQ(config.log_level, obs::Level::kError);
  EXPECT_EQ(config.work_dir, "/w");
}

TEST(AgentConfig, FlagsOnlyRaiseFloors) {
  Flags flags = kFromFile;
  flags.minimum_cohort = 3;
  flags.require_differential_privacy = true;
  const std::string file =
      std::string(kSmallest) + "require: {secureAggregation: true, minimumCohort: 5}\n";
  ASSERT_OK_AND_ASSIGN(const Config config, ParseConfig(file, flags));
  EXPECT_EQ(config.require, (Floors{true, true, 5}));
}

TEST(AgentConfig, ProblemsNameFileLineAndField) {
  const auto expect = [](const std::string& more, const std::string& where,
                         const std::string& what) {
    EXPECT_THAT(ParseConfig(std::string(kSmallest) + more, kFromFile),
                StatusIs(Code::kInvalidArgument,
                         AllOf(HasSubstr("/etc/fl/agent.yaml:" + where), HasSubstr(what))))
        << more;
  };
  expect("keyfile: x\n", "5: keyfile: ", "unknown field");
  expect("workDir: 7\n", "5: workDir: ", "must be a string");
  expect("insecure: maybe\n", "5: insecure: ", "true or false");
  expect("trainers:\n  t: {comand: [x]}\n", "6: trainers.t.comand: ", "unknown field");
  expect("trainers:\n  t: {worker: true}\n", "6: trainers.t", "needs a command");
  expect("trainers:\n  t: {command: sh -c x}\n", "6: trainers.t.command: ", "a list");
  expect("trainers:\n  t: {command: [x], timeoutSeconds: -1}\n", "6: ", "greater than 0");
  expect("trainers:\n  t: {command: [x], timeoutSeconds: .nan}\n", "6: ", "");
  expect("trainers:\n  ../t: {command: [x]}\n", "6: ", "name");
  expect("trainers: [x]\n", "5: trainers: ", "must be a map");
  expect("require: {minimumCohort: 1.5}\n", "5: require.minimumCohort: ", "whole number");
  expect("require: {minimumCohort: -1}\n", "5: require.minimumCohort: ", "must be from 0");
  expect("logFormat: xml\n", "5: logFormat: ", "auto, text or json");
  expect("logLevel: loud\n", "5: logLevel: ", "loud");
  expect("agents: [{client: b, keyFile: b.key}]\n", "5: agents: ", "single one");
  expect("client: again\n", "5: client", "");
}

TEST(AgentConfig, WhatMakesNoSenseIsRefusedWithWhatToDo) {
  const auto expect = [](const std::string& text, const std::string& what) {
    EXPECT_THAT(ParseConfig(text, kFromFile), StatusIs(Code::kInvalidArgument, HasSubstr(what)))
        << text;
  };
  expect("", "no aggregator");
  expect("aggregator: https://a", "no client");
  expect("{client: a, aggregator: https://a}", "nothing to prove who it is");
  expect("{client: A_b, aggregator: https://a, keyFile: k}", "no name of a client");
  expect("{client: a, aggregator: 'a:80', keyFile: k}", "no address");
  expect("{client: a, aggregator: 'http://a', keyFile: k}", "not encrypted");
  expect("{client: a, aggregator: https://a, keyFile: k, insecure: true, caFile: c}", "caFile");
  expect("{client: a, aggregator: https://a, certificateFile: c}", "only one of");
  expect(
      "{client: a, aggregator: https://a, certificateFile: c, certificateKeyFile: k, keyFile: k}",
      "both");
  expect("{aggregator: https://a, agents: [{client: a, keyFile: k}, {client: a, keyFile: l}]}",
         "twice");
  Flags flags = kFromFile;
  flags.client = "c";
  EXPECT_THAT(
      ParseConfig(
          "{aggregator: https://a, agents: [{client: a, keyFile: k}, {client: b, keyFile: l}]}",
          flags),
      StatusIs(Code::kInvalidArgument, HasSubstr("--client")));
}

TEST(AgentConfig, DatasetsBesideTheFileAreFoundWhateverTheFolderIsCalled) {
  ASSERT_OK_AND_ASSIGN(
      const Config config,
      ParseConfig(std::string(kSmallest) + "dataset: file:a.csv\n", {.config = "/x/50%/a?b#c/f"}));
  EXPECT_EQ(config.clients[0].dataset, "file:/x/50%25/a%3Fb%23c/a.csv");
}

TEST(AgentConfig, TrainersComeFromAFileOfTheirOwnToo) {
  const base::TemporaryDirectory folder;
  ASSERT_THAT(base::WriteFileAtomically(
                  folder / "agent.yaml",
                  std::string(kSmallest) + "trainers: {a: {command: [one]}, b: {command: [b]}}"),
              IsOk());
  for (const char* text : {"trainers: {a: {command: [two], workingDirectory: .}}",
                           "a: {command: [two], workingDirectory: .}"}) {
    ASSERT_THAT(base::WriteFileAtomically(folder / "trainers.yaml", text), IsOk());
    ASSERT_OK_AND_ASSIGN(const Config config, LoadConfig({.config = folder / "agent.yaml",
                                                          .trainers = folder / "trainers.yaml"}));
    ASSERT_THAT(config.trainers, SizeIs(2));
    EXPECT_THAT(config.trainers.at("a").command, ElementsAre("two"));
  }
  EXPECT_THAT(LoadConfig({.config = folder / "none.yaml"}),
              StatusIs(Code::kNotFound, HasSubstr("none.yaml")));
}

}  // namespace
}  // namespace fl::agent
