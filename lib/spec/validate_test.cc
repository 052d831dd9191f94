#include "spec/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/testing/status_matchers.h"
#include "spec/defaults.h"
#include "spec/json.h"
#include "spec/parse.h"

namespace fl::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string ReadTestData(const std::string& name) {
  std::ifstream file(std::string(FL_TESTDATA) + "/" + name);
  EXPECT_TRUE(file.good()) << name;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The documents of a file, cut at lines that are "---".
std::vector<std::string> Documents(const std::string& name) {
  std::istringstream file(ReadTestData(name));
  std::vector<std::string> documents(1);
  for (std::string line; std::getline(file, line);) {
    if (line == "---") {
      documents.emplace_back();
    } else {
      documents.back() += line + "\n";
    }
  }
  return documents;
}

struct Expected {
  std::string path;
  std::string message;
};

/// The lines "# problem: PATH: message" of a document.
std::vector<Expected> ExpectedProblems(const std::string& document) {
  constexpr std::string_view kMark = "# problem: ";
  std::vector<Expected> expected;
  std::istringstream lines(document);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(kMark)) continue;
    line.erase(0, kMark.size());
    const size_t colon = line.find(": ");
    const std::string path = line.substr(0, colon);
    expected.push_back({path == "-" ? "" : path, line.substr(colon + 2)});
  }
  return expected;
}

std::string Print(const Problems& problems) {
  std::string text;
  for (const Problem& problem : problems) text += "  " + problem.ToString() + "\n";
  return text;
}

TEST(Objects, GoodOnesAreTakenAndComeBack) {
  const std::vector<std::string> documents = Documents("objects/good.yaml");
  ASSERT_GT(documents.size(), 10U);
  for (const std::string& document : documents) {
    SCOPED_TRACE(document);
    const ParseResult result = ParseYaml(document, "good.yaml");
    ASSERT_THAT(result.problems, IsEmpty()) << Print(result.problems);
    ASSERT_EQ(result.documents.size(), 1U);
    const Object& object = result.documents[0].object;

    const base::Result<Object> from_json = FromJson<Object>(ToJson(object));
    ASSERT_THAT(from_json, base::IsOk());
    EXPECT_EQ(*from_json, object);
    EXPECT_EQ(ToJson(*from_json), ToJson(object));

    const ParseResult from_yaml = ParseYaml(ToYaml(object), "again");
    ASSERT_THAT(from_yaml.problems, IsEmpty()) << ToYaml(object) << Print(from_yaml.problems);
    EXPECT_EQ(from_yaml.documents.at(0).object, object);

    Object complete = object;
    ApplyDefaults(complete);
    EXPECT_THAT(Validate(complete), IsEmpty()) << Print(Validate(complete));
    EXPECT_THAT(ValidateUpdate(object, complete), IsEmpty());
    Object twice = complete;
    ApplyDefaults(twice);
    EXPECT_EQ(twice, complete);
  }
}

// B23, B28, B42 and all other rules: the table says which problems each object has, and no more.
TEST(Objects, B23_B28_B42_BadOnesAreRefusedWithTheirProblems) {
  const std::vector<std::string> documents = Documents("objects/bad.yaml");
  ASSERT_GT(documents.size(), 200U);
  for (const std::string& document : documents) {
    SCOPED_TRACE(document);
    const std::vector<Expected> expected = ExpectedProblems(document);
    ASSERT_FALSE(expected.empty());
    const ParseResult result = ParseYaml(document, "bad.yaml");
    EXPECT_THAT(result.documents, IsEmpty());
    EXPECT_EQ(result.problems.size(), expected.size()) << Print(result.problems);
    for (const Expected& each : expected) {
      EXPECT_THAT(result.problems, testing::Contains(testing::AllOf(
                                       Field(&Problem::path, each.path),
                                       Field(&Problem::message, HasSubstr(each.message)))))
          << Print(result.problems);
    }
    for (const Problem& problem : result.problems) {
      EXPECT_GT(problem.line, 0) << problem.ToString();
      EXPECT_EQ(problem.source, "bad.yaml");
    }
  }
}

FederatedLearningJob Job() {
  const base::Result<FederatedLearningJob> job = FromJson<FederatedLearningJob>(
      R"({"apiVersion":"kubefl.dev/v1alpha1","kind":"FederatedLearningJob","metadata":{"name":"a"},
          "spec":{"modelRef":{"name":"m"},"rounds":5,"trainer":{"builtin":"mlp","config":{"x":1}}}})");
  return job.value();
}

std::vector<std::string> Paths(const Problems& problems) {
  std::vector<std::string> paths;
  for (const Problem& problem : problems) paths.push_back(problem.path);
  return paths;
}

TEST(ValidateUpdate, JobFieldsThatMayChange) {
  const FederatedLearningJob before = Job();
  FederatedLearningJob after = before;
  after.metadata.labels["team"] = "imaging";
  after.spec.suspend = true;
  after.spec.aborted = true;
  after.spec.attempt = 1;
  after.spec.ttl_seconds_after_finished = 10;
  after.spec.round_policy.deadline_seconds = 5;
  after.spec.round_policy.max_retries = 0;
  after.spec.rounds = 6;
  EXPECT_THAT(ValidateUpdate(before, after), IsEmpty());
}

TEST(ValidateUpdate, NothingElseOfAJobMayChange) {
  const FederatedLearningJob before = Job();
  const auto paths_after = [&before](auto change) {
    FederatedLearningJob after = before;
    change(after.spec);
    return Paths(ValidateUpdate(before, after));
  };
  EXPECT_THAT(paths_after([](JobSpec& spec) { spec.model_ref.name = "other"; }),
              ElementsAre("spec.modelRef.name"));
  EXPECT_THAT(paths_after([](JobSpec& spec) { spec.trainer.config["x"] = Value(2); }),
              ElementsAre("spec.trainer.config.x"));
  EXPECT_THAT(paths_after([](JobSpec& spec) { spec.trainer.config["y"] = Value(2); }),
              ElementsAre("spec.trainer.config.y"));
  EXPECT_THAT(paths_after([](JobSpec& spec) { spec.trainer.config.clear(); }),
              ElementsAre("spec.trainer.config"));
  EXPECT_THAT(paths_after([](JobSpec& spec) { spec.selection.seed = 1; }),
              ElementsAre("spec.selection.seed"));
  EXPECT_THAT(paths_after([](JobSpec& spec) { spec.aggregation.algorithm = "FedAdam"; }),
              ElementsAre("spec.aggregation.algorithm"));
  EXPECT_THAT(paths_after([](JobSpec& spec) { spec.privacy.differential_privacy.emplace(); }),
              testing::Contains("spec.privacy"));
  EXPECT_THAT(paths_after([](JobSpec& spec) { spec.convergence.emplace(); }),
              ElementsAre("spec.convergence"));
  EXPECT_THAT(paths_after([](JobSpec& spec) { spec.rounds = 4; }), ElementsAre("spec.rounds"));
  // A default that is written out is no change.
  EXPECT_THAT(paths_after([](JobSpec& spec) { spec.aggregation.algorithm = "FedAvg"; }), IsEmpty());
}

TEST(ValidateUpdate, AbortAndAttemptDoNotGoBack) {
  FederatedLearningJob before = Job();
  before.spec.aborted = true;
  before.spec.attempt = 2;
  FederatedLearningJob after = Job();
  after.spec.attempt = 1;
  EXPECT_THAT(Paths(ValidateUpdate(before, after)), ElementsAre("spec.aborted", "spec.attempt"));
}

TEST(ValidateUpdate, ModelAndClient) {
  FederatedModel model;
  model.metadata.name = "m";
  model.spec.initial.uri = "file:a";
  FederatedModel other = model;
  other.spec.version = 3;
  other.spec.retention.keep_last = 2;
  EXPECT_THAT(ValidateUpdate(model, other), IsEmpty());
  other.spec.initial.uri = "file:b";
  other.spec.registry = RegistryRef{.uri = "s3://x", .credentials_secret_ref = {}};
  EXPECT_THAT(Paths(ValidateUpdate(model, other)),
              ElementsAre("spec.initial.uri", "spec.registry"));

  FederatedClient client;
  client.metadata.name = "c";
  FederatedClient fenced = client;
  fenced.spec.fenced = true;
  EXPECT_THAT(ValidateUpdate(client, fenced), IsEmpty());
  fenced.spec.type = ClientType::kPod;
  EXPECT_THAT(Paths(ValidateUpdate(client, fenced)), ElementsAre("spec.type"));
  EXPECT_THAT(Paths(ValidateUpdate(model, client)), ElementsAre("kind"));
}

TEST(CheckName, SaysWhatAndWhy) {
  EXPECT_THAT(CheckName("hospital-a", "client name"), base::IsOk());
  EXPECT_THAT(CheckName(std::string(63, 'a'), "client name"), base::IsOk());
  EXPECT_THAT(CheckName(std::string(64, 'a'), "client name"),
              base::StatusIs(base::Code::kInvalidArgument,
                             "client name must have at most 63 characters, not 64"));
  for (const char* bad : {"", "A", "a.b", "-a", "a-", "a/b", "../a", "a b", "ä"}) {
    EXPECT_THAT(CheckName(bad, "name"), testing::Not(base::IsOk())) << bad;
  }
}

}  // namespace
}  // namespace fl::spec
