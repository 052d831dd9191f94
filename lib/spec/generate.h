#pragma once

/// Commented YAML to start from, for `fl generate`. Every text parses and validates.

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"

namespace fl::spec {

struct GenerateJobOptions {
  std::string name = "digits";
  std::string model = "digits";
  int64_t rounds = 20;
  std::string algorithm = "FedAvg";
  std::string trainer = "mlp";  ///< "mlp" or "softmax", else the name of a trainer at each agent
  std::optional<int64_t> clients_per_round;
  std::optional<std::string> test_dataset;
};

struct GenerateModelOptions {
  std::string name = "digits";
  std::optional<std::string> registry;
  std::optional<std::string> initial;  ///< URI; left out: a built-in mlp of 64-32-10
};

struct GenerateClientOptions {
  std::string name = "hospital-a";
  std::optional<std::string> public_key;  ///< an Agent with this key; left out: a Pod
  std::string image = "registry.example.org/trainer:1.0";
  std::string dataset = "file:///data/train.csv";
};

/// kInvalidArgument where an option makes an object that does not validate.
base::Result<std::string> GenerateJob(const GenerateJobOptions& options);
base::Result<std::string> GenerateModel(const GenerateModelOptions& options);
base::Result<std::string> GenerateClient(const GenerateClientOptions& options);

}  // namespace fl::spec
