#include "strategy/aggregate/aggregate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include "base/random.h"
#include "base/testing/status_matchers.h"
#include "strategy/testing/round_folder.h"

namespace fl::strategy {
namespace {

using base::Code;
using base::IsOk;
using base::StatusIs;
using tensor::DType;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<std::string> RejectedClients(const AggregateReport& report) {
  std::vector<std::string> clients;
  for (const auto& rejected : report.rejected) clients.push_back(rejected.client.str());
  return clients;
}

TEST(Aggregate, TheMeanIsWeightedBySamples) {
  RoundFolder round;
  round.AddUpdate("b", 1, F32Model({5, 6}));
  round.AddUpdate("a", 3, F32Model({1, 2}));
  ASSERT_THAT(round.Run(), IsOk());
  EXPECT_THAT(round.Values("w"), ElementsAre(2, 3));
  ASSERT_EQ(round.report.accepted.size(), 2u);
  EXPECT_EQ(round.report.accepted[0].client.str(), "a");
  EXPECT_EQ(round.report.accepted[0].weight, 3);
  EXPECT_EQ(round.report.total_weight, 4);
  EXPECT_TRUE(round.report.rejected.empty());
  EXPECT_EQ(round.report.output.digest, base::Digest::Of(round.OutputBytes()));
  EXPECT_EQ(round.report.output.size, round.OutputBytes().size());
  EXPECT_FALSE(round.report.state.has_value());
}

TEST(Aggregate, B01_AllWeightsZeroIsAnErrorAndLeavesTheModel) {
  RoundFolder round;
  ASSERT_THAT(base::WriteFileAtomically(round.output(), "the model before"), IsOk());
  round.AddUpdate("a", 0, F32Model({1, 2}));
  round.AddUpdate("b", 0, F32Model({3, 4}));
  EXPECT_THAT(round.Run(), StatusIs(Code::kFailedPrecondition, HasSubstr("weights of all")));
  EXPECT_EQ(round.OutputBytes(), "the model before");
  EXPECT_EQ(round.report.accepted.size(), 2u);
}

TEST(Aggregate, B01_AWeightOfZeroContributesNothing) {
  RoundFolder round;
  round.AddUpdate("a", 0, F32Model({1, 2}));
  round.AddUpdate("b", 10, F32Model({3, 4}));
  ASSERT_THAT(round.Run(), IsOk());
  EXPECT_THAT(round.Values("w"), ElementsAre(3, 4));
  EXPECT_EQ(round.report.accepted.size(), 2u);
  EXPECT_EQ(round.report.total_weight, 10);
}

TEST(Aggregate, B01_WeightsThatAreNotCountsRejectTheirUpdate) {
  for (const double weight : {-5.0, -0x1p-1074, kNaN, kInfinity, -kInfinity, 1e300, 1e-300}) {
    RoundFolder round;
    round.AddUpdate("a", weight, F32Model({1, 2}));
    round.AddUpdate("b", 10, F32Model({3, 4}));
    ASSERT_THAT(round.Run(), IsOk()) << weight;
    EXPECT_THAT(round.Values("w"), ElementsAre(3, 4));
    EXPECT_THAT(RejectedClients(round.report), ElementsAre("a"));
    EXPECT_THAT(round.report.rejected[0].reason, HasSubstr("weight"));
    EXPECT_EQ(round.report.rejected[0].tensor, "");
  }
}

TEST(Aggregate, B04_HalvesDoNotOverflowAndAreRoundedOnce) {
  const auto mean = [](DType dtype, double a, double n_a, double b, double n_b) {
    RoundFolder round;
    round.AddUpdate("a", n_a, {FloatTensor("w", dtype, {1}, {a})});
    round.AddUpdate("b", n_b, {FloatTensor("w", dtype, {1}, {b})});
    FL_CHECK(round.Run().ok());
    return round.Values("w").front();
  };
  EXPECT_EQ(mean(DType::kF16, 60000, 100, 60000, 100), 60000);
  EXPECT_EQ(mean(DType::kF16, 40000, 1, 50000, 1), 44992);
  EXPECT_EQ(mean(DType::kF16, 65504, 1e15, 65504, 3), 65504);
  EXPECT_EQ(mean(DType::kBF16, 0x1.fep127, 7, 0x1.fep127, 3), 0x1.fep127);
  EXPECT_EQ(mean(DType::kF32, 0x1.fffffep127, 1e15, 0x1.fffffep127, 3), 0x1.fffffep127);
  EXPECT_EQ(mean(DType::kF64, 0x1.fffffffffffffp1023, 9e15, 0x1.fffffffffffffp1023, 3),
            0x1.fffffffffffffp1023);
  EXPECT_DOUBLE_EQ(mean(DType::kF64, 1e308, 300, -1e308, 100), 5e307);
  EXPECT_EQ(mean(DType::kF8E4M3, 448, 3, 448, 5), 448);
  // 1 + 2⁻¹¹ + a little: through F32 it would become the tie and go down to 1.
  EXPECT_EQ(mean(DType::kF16, 1, 1, 1 + 0x1p-10, 1 + 0x1p-30), 1 + 0x1p-10);
  EXPECT_EQ(mean(DType::kF16, 1, 1, 1 + 0x1p-10, 1), 1);
}

TEST(Aggregate, TheSumOfOneClientIsItsUpdate) {
  base::SeededRandom random({9});
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    std::vector<double> values(5000);
    for (double& value : values) value = random.Normal() * std::pow(10.0, random.Below(4)) - 4;
    values[7] = -0.0;
    values[8] = 0x1p-24;
    values[9] = dtype == DType::kF64 ? 0x1p-1074 : -0x1p-24;
    RoundFolder round;
    const auto tensor = FloatTensor("w", dtype, {values.size()}, values);
    ASSERT_EQ(tensor::CountNonFinite(dtype, tensor.bytes), 0u);
    round.AddUpdate("a", 7, {tensor});
    ASSERT_THAT(round.Run(), IsOk());
    EXPECT_EQ(round.OutputBytes(), *base::ReadFile(round.request.updates[0].tensors->path()));
  }
}

TEST(Aggregate, B30_ScalarsAndEmptyTensors) {
  RoundFolder round;
  const auto model = [](double value) {
    return std::vector<tensor::Tensor>{FloatTensor("a", DType::kF32, {}, {value}),
                                       FloatTensor("e", DType::kF32, {0, 3}, {})};
  };
  round.AddUpdate("a", 1, model(1.5));
  round.AddUpdate("b", 1, model(2.5));
  ASSERT_THAT(round.Run(), IsOk());
  EXPECT_THAT(round.Values("a"), ElementsAre(2));
  EXPECT_THAT(round.Values("e"), ElementsAre());

  RoundFolder empty;
  empty.AddUpdate("a", 1, {});
  EXPECT_THAT(empty.Run(), IsOk());
}

TEST(Aggregate, ByNameNeverByPosition) {
  RoundFolder round;
  const auto u = [](double value) { return FloatTensor("u", DType::kF32, {2}, {value, value}); };
  const auto v = [](double value) { return FloatTensor("v", DType::kF32, {2}, {value, value}); };
  round.SetGlobal({u(0), v(0)});
  round.AddUpdate("a", 1, {u(1), v(10)});
  round.AddUpdate("b", 1, {v(20), u(2)});
  ASSERT_THAT(round.Run(), IsOk());
  EXPECT_THAT(round.Values("u"), ElementsAre(1.5, 1.5));
  EXPECT_THAT(round.Values("v"), ElementsAre(15, 15));
  const auto output = tensor::SafetensorsFile::Open(round.output());
  EXPECT_EQ(output->header().tensors()[0].name, "u");  // the order of the global model
}

TEST(Aggregate, UpdatesOfAnotherFormAreRejectedByClientAndTensor) {
  RoundFolder round;
  const auto w = [](std::vector<uint64_t> shape, DType dtype = DType::kF32) {
    return FloatTensor("w1", dtype, std::move(shape), std::vector<double>(6, 1));
  };
  const auto b = FloatTensor("b", DType::kF32, {1}, {1});
  round.SetGlobal({w({2, 3}), b});
  round.AddUpdate("good", 1, {b, w({2, 3})});
  round.AddUpdate("shape", 1, {w({3, 2}), b});
  round.AddUpdate("dtype", 1, {w({2, 3}, DType::kF16), b});
  round.AddUpdate("missing", 1, {w({2, 3})});
  round.AddUpdate("extra", 1, {w({2, 3}), b, FloatTensor("x", DType::kF32, {1}, {1})});
  round.AddUpdate("nan", 1, {w({2, 3}), FloatTensor("b", DType::kF32, {1}, {kNaN})});
  ASSERT_THAT(round.Run(), IsOk());
  std::map<std::string, std::pair<std::string, std::string>> rejected;
  for (const auto& entry : round.report.rejected) {
    rejected[entry.client.str()] = {entry.tensor, entry.reason};
  }
  using Entry = std::pair<std::string, std::string>;
  EXPECT_EQ(rejected["shape"], Entry("w1", "tensor \"w1\" has shape [3,2], the model has [2,3]"));
  EXPECT_EQ(rejected["dtype"], Entry("w1", "tensor \"w1\" has dtype F16, the model has F32"));
  EXPECT_EQ(rejected["missing"], Entry("b", "tensor \"b\" is missing"));
  EXPECT_EQ(rejected["extra"], Entry("x", "unexpected tensor \"x\""));
  EXPECT_EQ(rejected["nan"].first, "b");
  EXPECT_THAT(rejected["nan"].second, HasSubstr("element 0"));
  ASSERT_EQ(round.report.accepted.size(), 1u);
  EXPECT_EQ(round.report.accepted[0].client.str(), "good");
}

// One value that is not finite, wherever it stands and whatever the weight, rejects its update and
// leaves what the others give.
TEST(Aggregate, NonFiniteValuesRejectTheirUpdateOnly) {
  for (const DType dtype :
       {DType::kF8E4M3, DType::kF8E5M2, DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    for (const double weight : {0.0, 5.0}) {
      for (const auto& [bad, place] : std::initializer_list<std::pair<double, size_t>>{
               {kNaN, 0}, {kInfinity, 1}, {-kInfinity, 4999}, {kNaN, 70'001}}) {
        RoundFolder round;
        std::vector<double> values(70'002, 2);
        round.AddUpdate("a", 1, {FloatTensor("w", dtype, {values.size()}, values)});
        values[place] = bad;
        round.AddUpdate("b", weight, {FloatTensor("w", dtype, {values.size()}, values)});
        values[place] = 1;
        round.AddUpdate("c", 0, {FloatTensor("w", dtype, {values.size()}, values)});
        ASSERT_THAT(round.Run(), IsOk());
        ASSERT_THAT(RejectedClients(round.report), ElementsAre("b"));
        EXPECT_EQ(round.report.rejected[0].tensor, "w");
        EXPECT_THAT(round.report.rejected[0].reason, HasSubstr("element " + std::to_string(place)));
        const std::vector<double> result = round.Values("w");
        EXPECT_EQ(std::count(result.begin(), result.end(), 2), 70'002);
      }
    }
  }
}

TEST(Aggregate, NothingLeftIsAnErrorThatWritesNothing) {
  RoundFolder round;
  round.SetGlobal(F32Model({0, 0}));
  round.AddUpdate("a", 1, F32Model({1, kNaN}));
  round.AddUpdate("b", -1, F32Model({1, 2}));
  round.AddUpdate("c", 1, F32Model({1, 2, 3}));
  EXPECT_THAT(round.Run(), StatusIs(Code::kFailedPrecondition, HasSubstr("all 3 updates")));
  EXPECT_THAT(RejectedClients(round.report), ElementsAre("a", "b", "c"));
  for (const auto& entry : std::filesystem::directory_iterator(round.path())) {
    EXPECT_THAT(entry.path().filename().string(), ::testing::StartsWith("file"));
  }
}

TEST(Aggregate, RequestsThatMakeNoSenseAreRefused) {
  RoundFolder none;
  EXPECT_THAT(none.Run(), StatusIs(Code::kFailedPrecondition, HasSubstr("no updates")));
  RoundFolder twice;
  twice.AddUpdate("a", 1, F32Model({1}));
  twice.AddUpdate("a", 1, F32Model({1}));
  EXPECT_THAT(twice.Run(), StatusIs(Code::kInvalidArgument, HasSubstr("two updates of client")));
  RoundFolder no_global;
  no_global.AddUpdate("a", 1, F32Model({1}));
  for (const char* name : {"FedAvgM", "FedAdam", "FedYogi", "FedAdagrad", "FedNova"}) {
    EXPECT_THAT(no_global.Run({name, {}}),
                StatusIs(Code::kInvalidArgument, HasSubstr("global model")));
  }
  EXPECT_THAT(no_global.Run({"FedAvg", {{"serverLearningRate", "0.5"}}}),
              StatusIs(Code::kInvalidArgument, HasSubstr("global model")));
}

TEST(Aggregate, WithoutAGlobalModelTheMajorityDecides) {
  RoundFolder round;
  round.AddUpdate("a", 1, F32Model({1, 2, 3}));
  round.AddUpdate("b", 1, F32Model({1, 2}));
  EXPECT_THAT(round.Run(), StatusIs(Code::kInvalidArgument, HasSubstr("majority")));
  round.AddUpdate("c", 1, F32Model({3, 4}));
  ASSERT_THAT(round.Run(), IsOk());
  EXPECT_THAT(round.Values("w"), ElementsAre(2, 3));
  EXPECT_THAT(RejectedClients(round.report), ElementsAre("a"));
  round.AddUpdate("d", 1, F32Model({1, 2, 3}));
  EXPECT_THAT(round.Run(), StatusIs(Code::kInvalidArgument, HasSubstr("2 of 4 each")));
  // Another order of the same tensors is the same kind.
  RoundFolder mixed;
  const auto u = FloatTensor("u", DType::kF32, {1}, {1});
  const auto v = FloatTensor("v", DType::kF32, {1}, {1});
  mixed.AddUpdate("a", 1, {u, v});
  mixed.AddUpdate("b", 1, {v, u});
  mixed.AddUpdate("c", 1, {v});
  ASSERT_THAT(mixed.Run(), IsOk());
  EXPECT_THAT(RejectedClients(mixed.report), ElementsAre("c"));
}

/// A model with tensors of all dtypes and odd sizes, with values that depend on `random`.
std::vector<tensor::Tensor> RandomModel(base::SeededRandom& random, uint64_t scale) {
  std::vector<tensor::Tensor> tensors;
  for (int i = 0; i < 15; ++i) {
    const auto dtype = static_cast<DType>(i);
    const uint64_t count = 1 + scale * static_cast<uint64_t>(i) % 3000 + (i == 13 ? scale : 0);
    tensor::Tensor tensor{{"t" + std::to_string(i), dtype, {count}}, {}};
    tensor.bytes.resize(count * tensor::ElementSize(dtype));
    if (tensor::IsFloating(dtype)) {
      std::vector<double> values(count);
      for (double& value : values) value = random.Normal();
      tensor::EncodeFromDouble(dtype, values.data(), count, tensor.bytes.data());
    } else {
      random.Fill(tensor.bytes);
      if (dtype == DType::kBool) {
        for (uint8_t& byte : tensor.bytes) byte &= 1;
      }
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

// The result is one function of the set of updates: the order in which they are given, the order of
// tensors in their files, and the number of threads change no bit.
TEST(Aggregate, SameBitsForAnyOrderAndNumberOfThreads) {
  base::SeededRandom random({17});
  base::ThreadPool one(1);
  base::ThreadPool three(3);
  const std::vector<AlgorithmSpec> algorithms = {
      {"FedAvg", {}},     {"FedAdam", {{"biasCorrection", "true"}}},
      {"FedYogi", {}},    {"FedAvgM", {}},
      {"FedAdagrad", {}}, {"FedNova", {}}};
  for (int run = 0; run < 6; ++run) {
    RoundFolder round;
    const uint64_t scale = run == 0 ? 1'300'000 : random.Below(3000);  // several bands
    const uint64_t seed = random.Next();
    const auto model = [&](uint64_t client) {
      base::SeededRandom values({seed, client});
      std::vector<tensor::Tensor> tensors = RandomModel(values, scale);
      random.Shuffle(tensors);
      return tensors;
    };
    round.SetGlobal(model(0));
    const uint64_t clients = run == 0 ? 3 : 1 + random.Below(9);
    for (uint64_t i = 1; i <= clients; ++i) {
      round.AddUpdate("c" + std::to_string(i), static_cast<double>(random.Below(1000)) + 1,
                      model(i), static_cast<int64_t>(random.Below(20)) + 1);
    }
    const AlgorithmSpec& algorithm = algorithms[static_cast<size_t>(run) % algorithms.size()];
    std::optional<AggregateReport> first;
    for (base::ThreadPool* pool : {static_cast<base::ThreadPool*>(nullptr), &one, &three}) {
      random.Shuffle(round.request.updates);
      round.request.pool = pool;
      ASSERT_THAT(round.Run(algorithm), IsOk()) << algorithm.name;
      EXPECT_EQ(round.report.output.digest, base::Digest::Of(round.OutputBytes()));
      if (!first) first = round.report;
      EXPECT_EQ(round.report.output.digest, first->output.digest) << algorithm.name;
      EXPECT_EQ(round.report.state.has_value(), first->state.has_value());
      if (first->state) {
        EXPECT_EQ(round.report.state->digest, first->state->digest);
        EXPECT_EQ(round.report.state->digest, base::Digest::Of(*base::ReadFile(round.state())));
      }
    }
  }
}

// Against the plainest loop there is: for each coordinate, over the clients by name.
TEST(Aggregate, AgreesWithAPlainLoop) {
  base::SeededRandom random({23});
  for (int run = 0; run < 30; ++run) {
    RoundFolder round;
    const size_t count = 1 + random.Below(5000);
    const size_t clients = 1 + random.Below(12);
    std::vector<double> sums(count, 0);
    double total = 0;
    for (size_t k = 0; k < clients; ++k) {
      const double weight = static_cast<double>(1 + random.Below(5000));
      std::vector<double> values(count);
      for (double& value : values) value = static_cast<float>(random.Normal());
      // Names in the order of k.
      round.AddUpdate(std::string(1, static_cast<char>('a' + k)), weight, F32Model(values));
      for (size_t i = 0; i < count; ++i) sums[i] += weight * values[i];
      total += weight;
    }
    random.Shuffle(round.request.updates);
    ASSERT_THAT(round.Run(), IsOk());
    const std::vector<double> result = round.Values("w");
    for (size_t i = 0; i < count; ++i) {
      ASSERT_EQ(result[i], static_cast<double>(static_cast<float>(sums[i] / total))) << i;
    }
  }
}

TEST(Aggregate, MetadataGoIntoTheOutput) {
  RoundFolder round;
  round.request.metadata = {{"round", "7"}};
  round.AddUpdate("a", 1, F32Model({1}));
  ASSERT_THAT(round.Run(), IsOk());
  EXPECT_EQ(tensor::SafetensorsFile::Open(round.output())->header().metadata(),
            (tensor::Header::Metadata{{"round", "7"}}));
}

}  // namespace
}  // namespace fl::strategy
