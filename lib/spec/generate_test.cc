#include "spec/generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/status_matchers.h"
#include "spec/algorithms.h"
#include "spec/parse.h"

namespace fl::spec {
namespace {

using ::testing::HasSubstr;

constexpr char kKey[] =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKSPiMAEOBkR4TAWvbStFAp2vixgdpt77eVPrKjEW7mf";

Object Only(const std::string& text) {
  ParseResult result = ParseYaml(text, "");
  EXPECT_TRUE(result.problems.empty()) << ToStatus(result.problems).ToString() << text;
  EXPECT_EQ(result.documents.size(), 1U);
  return std::move(result.documents.at(0).object);
}

/// Takes the "# " off every commented field, so that the examples in comments are checked too.
std::string Uncommented(const std::string& text) {
  std::string out;
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = text.find('\n', at);
    std::string line = text.substr(at, end - at);
    const size_t content = line.find_first_not_of(' ');
    if (content != std::string::npos && line.compare(content, 2, "# ") == 0) line.erase(content, 2);
    out += line + "\n";
    at = end + 1;
  }
  return out;
}

TEST(Generate, DefaultsAndTheirCommentsAreValid) {
  for (const base::Result<std::string>& text :
       {GenerateModel({}), GenerateClient({}),
        GenerateClient({.name = "a", .public_key = kKey, .image = "", .dataset = "file:a.csv"})}) {
    ASSERT_THAT(text, base::IsOk());
    Only(*text);
    Only(Uncommented(*text));
  }
  // A job's comments are alternatives of one another where it has a test dataset and no DP.
  const base::Result<std::string> job = GenerateJob({});
  ASSERT_THAT(job, base::IsOk());
  Only(*job);
  Only(Uncommented(*job));
}

TEST(Generate, OptionsAreApplied) {
  GenerateJobOptions options;
  options.name = "null";
  options.model = "m";
  options.rounds = 7;
  options.algorithm = "FedAdam";
  options.trainer = "my-trainer";
  options.clients_per_round = 4;
  options.test_dataset = "file:///data/a b.csv";
  const base::Result<std::string> text = GenerateJob(options);
  ASSERT_THAT(text, base::IsOk());
  const auto job = std::get<FederatedLearningJob>(Only(*text));
  EXPECT_EQ(job.metadata.name, "null");
  EXPECT_EQ(job.spec.model_ref.name, "m");
  EXPECT_EQ(job.spec.rounds, 7);
  EXPECT_EQ(job.spec.aggregation.algorithm, "FedAdam");
  EXPECT_EQ(job.spec.trainer.name, "my-trainer");
  EXPECT_EQ(job.spec.selection.clients_per_round, 4);
  EXPECT_EQ(job.spec.evaluation.test_dataset, "file:///data/a b.csv");

  const base::Result<std::string> model =
      GenerateModel({.name = "m", .registry = "s3://b/p", .initial = "file:v0.safetensors"});
  ASSERT_THAT(model, base::IsOk());
  const auto federated_model = std::get<FederatedModel>(Only(*model));
  EXPECT_EQ(federated_model.spec.registry->uri, "s3://b/p");
  EXPECT_EQ(federated_model.spec.initial.uri, "file:v0.safetensors");
}

TEST(Generate, BadOptionsAreNamed) {
  GenerateJobOptions job;
  job.rounds = 0;
  EXPECT_THAT(GenerateJob(job), base::StatusIs(base::Code::kInvalidArgument,
                                               HasSubstr("spec.rounds: must be from 1")));
  job = {};
  job.algorithm = "FedAvf";
  EXPECT_THAT(GenerateJob(job),
              base::StatusIs(base::Code::kInvalidArgument, HasSubstr("did you mean \"FedAvg\"?")));
  EXPECT_THAT(GenerateModel({.name = std::string(64, 'a'), .registry = {}, .initial = {}}),
              base::StatusIs(base::Code::kInvalidArgument, HasSubstr("at most 63 characters")));
  GenerateClientOptions client;
  client.name = "a\nspec: {}";
  EXPECT_THAT(GenerateClient(client), testing::Not(base::IsOk()));
}

TEST(Algorithms, NamesAreFoundAndDefaultsAreInRange) {
  EXPECT_EQ(FindAlgorithm("fedavg"), nullptr);
  for (const Algorithm& algorithm : Algorithms()) {
    EXPECT_EQ(FindAlgorithm(algorithm.name), &algorithm);
    for (const AlgorithmParameter& parameter : algorithm.parameters) {
      if (parameter.default_value.empty() || parameter.boolean) continue;
      const double value = Fraction::Parse(parameter.default_value).value().value();
      EXPECT_GE(value, parameter.minimum) << algorithm.name << " " << parameter.name;
      EXPECT_LE(value, parameter.maximum) << algorithm.name << " " << parameter.name;
    }
  }
}

}  // namespace
}  // namespace fl::spec
