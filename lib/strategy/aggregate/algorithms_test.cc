// The server optimisers through files: golden values, states across rounds, refusals.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/random.h"
#include "base/testing/status_matchers.h"
#include "strategy/testing/round_folder.h"

namespace fl::strategy {
namespace {

using base::Code;
using base::IsOk;
using base::StatusIs;
using tensor::DType;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<tensor::Tensor> F64Model(const std::vector<double>& values) {
  return {FloatTensor("w", DType::kF64, {values.size()}, values)};
}

/// The next value of a one-number F64 model that was `global`, where the clients' mean is `mean`.
double StepOnce(const AlgorithmSpec& spec, double global, double mean) {
  RoundFolder round;
  round.SetGlobal(F64Model({global}));
  round.AddUpdate("a", 1, F64Model({mean}));
  const base::Status status = round.Run(spec);
  FL_CHECK_MSG(status.ok(), status.ToString());
  return round.Values("w").front();
}

TEST(Algorithms, B09_AdamStepsWithItsMomentumAndWithoutBiasCorrection) {
  std::map<std::string, std::string> parameters = {{"serverLearningRate", "0.1"},
                                                   {"beta1", "0.9"},
                                                   {"beta2", "0.99"},
                                                   {"tau", "0.001"},
                                                   {"initialAccumulator", "0"}};
  EXPECT_NEAR(StepOnce({"FedAdam", parameters}, 1, 1.5), 1.0980392157, 1e-10);
  parameters["biasCorrection"] = "true";
  EXPECT_NEAR(StepOnce({"FedAdam", parameters}, 1, 1.5), 1.0998003992, 1e-10);
  // The same through F32, as far as it goes.
  RoundFolder round;
  round.SetGlobal(F32Model({1}));
  round.AddUpdate("a", 1, F32Model({1.5}));
  parameters.erase("biasCorrection");
  ASSERT_THAT(round.Run({"FedAdam", parameters}), IsOk());
  EXPECT_NEAR(round.Values("w").front(), 1.0980392157, 1e-7);
}

TEST(Algorithms, B09_YogiMovesItsSecondMomentBySign) {
  const auto second_moment = [](const std::string& algorithm, const std::string& initial) {
    RoundFolder round;
    round.SetGlobal(F64Model({1}));
    round.AddUpdate("a", 1, F64Model({1.5}));
    FL_CHECK(round.Run({algorithm, {{"initialAccumulator", initial}}}).ok());
    return round.ValuesOf(round.state(), "v/w").front();
  };
  EXPECT_NEAR(second_moment("FedYogi", "1"), 0.9975, 1e-12);
  EXPECT_NEAR(second_moment("FedYogi", "0.04"), 0.0425, 1e-12);
  EXPECT_EQ(second_moment("FedYogi", "0.25"), 0.25);  // sign(0) = 0
  EXPECT_NEAR(second_moment("FedAdam", "1"), 0.9925, 1e-12);
  EXPECT_NEAR(second_moment("FedAdagrad", "1"), 1.25, 1e-12);
}

TEST(Algorithms, GoldenSteps) {
  // Δ = 0.5 throughout.
  EXPECT_EQ(StepOnce({"FedAvg", {{"serverLearningRate", "0.5"}}}, 1, 1.5), 1.25);
  EXPECT_EQ(StepOnce({"FedAvg", {{"serverLearningRate", "2"}}}, 1, 1.5), 2);
  EXPECT_EQ(StepOnce({"FedProx", {{"mu", "0.1"}}}, 1, 1.5), 1.5);
  EXPECT_EQ(StepOnce({"FedAvgM", {}}, 1, 1.5), 1.5);
  // m = Δ, v = 10⁻⁶ + 0.25.
  EXPECT_NEAR(StepOnce({"FedAdagrad", {}}, 1, 1.5), 1 + 0.1 * 0.5 / (std::sqrt(0.25 + 1e-6) + 1e-3),
              1e-14);
}

/// One-coordinate optimiser in plain text of the paper, its state kept in F32 as the file keeps it.
struct PlainOptimiser {
  std::string algorithm;
  double rate, beta1, beta2, tau;
  bool correct;
  float m = 0, v = 0;
  int step = 0;

  float Next(float global, double mean) {
    ++step;
    const double delta = mean - global;
    double new_m = beta1 * m + (1 - beta1) * delta;
    double new_v = v;
    if (algorithm == "FedAvgM") {
      new_m = 0.9 * m + delta;
      m = static_cast<float>(new_m);
      return static_cast<float>(global + rate * new_m);
    }
    if (algorithm == "FedAdagrad") new_v = v + delta * delta;
    if (algorithm == "FedAdam") new_v = beta2 * v + (1 - beta2) * delta * delta;
    if (algorithm == "FedYogi") {
      const double square = delta * delta;
      const double sign = v > square ? 1 : v < square ? -1 : 0;
      new_v = v - (1 - beta2) * square * sign;
    }
    m = static_cast<float>(new_m);
    v = static_cast<float>(new_v);
    const double m_hat = correct ? new_m / (1 - std::pow(beta1, step)) : new_m;
    const double v_hat = correct ? new_v / (1 - std::pow(beta2, step)) : new_v;
    return static_cast<float>(global + rate * m_hat / (std::sqrt(v_hat) + tau));
  }
};

// Eight rounds, the state going through its file each time, against the plain optimiser.
TEST(Algorithms, StatesCarryFromRoundToRound) {
  for (const auto& [algorithm, correct] :
       std::initializer_list<std::pair<std::string, bool>>{{"FedAvgM", false},
                                                           {"FedAdagrad", false},
                                                           {"FedAdam", false},
                                                           {"FedAdam", true},
                                                           {"FedYogi", false},
                                                           {"FedYogi", true}}) {
    base::SeededRandom random({51});
    const bool momentum = algorithm == "FedAvgM";
    AlgorithmSpec spec{algorithm, {}};
    if (correct) spec.parameters["biasCorrection"] = "true";
    PlainOptimiser plain{
        algorithm, momentum ? 1.0 : 0.1, algorithm == "FedAdagrad" ? 0.0 : 0.9, 0.99, 0.001,
        correct};
    plain.v = static_cast<float>(0.001 * 0.001);
    float global = 0.25f;
    RoundFolder round;
    for (int number = 1; number <= 8; ++number) {
      round.SetGlobal(F32Model({global}));
      round.request.updates.clear();
      const float trained = static_cast<float>(global + random.Normal() * 0.1);
      round.AddUpdate("a", 1, F32Model({trained}));
      ASSERT_THAT(round.Run(spec), IsOk());
      const float expected = plain.Next(global, trained);
      const double got = round.Values("w").front();
      ASSERT_NEAR(got, expected, 2e-7 * std::max(1.0f, std::fabs(expected)))
          << algorithm << " " << number;
      EXPECT_EQ(round.ValuesOf(round.state(), "m/w").front(), plain.m);
      const auto& state = round.Open(round.state());
      EXPECT_EQ(state.header().metadata().at("algorithm"), algorithm);
      EXPECT_EQ(state.header().metadata().at("step"), std::to_string(number));
      EXPECT_EQ(state.header().Find("v/w") == nullptr, momentum);
      EXPECT_EQ(round.report.state->digest, base::Digest::Of(state.bytes()));
      round.request.state = &state;
      global = static_cast<float>(got);
    }
  }
}

TEST(Algorithms, IntegersTakeNoStepAndHaveNoState) {
  RoundFolder round;
  const auto model = [](double w, int64_t n) {
    tensor::Tensor count{{"n", DType::kI64, {}}, std::vector<uint8_t>(8)};
    std::memcpy(count.bytes.data(), &n, 8);
    return std::vector<tensor::Tensor>{FloatTensor("w", DType::kF16, {1}, {w}), count};
  };
  round.SetGlobal(model(0, 1000));
  round.AddUpdate("a", 1, model(1, 10), 3);
  round.AddUpdate("b", 3, model(1, 20), 9);
  for (const std::string algorithm : {"FedAdam", "FedAvgM", "FedNova"}) {
    ASSERT_THAT(round.Run({algorithm, {{"serverLearningRate", "0.5"}}}), IsOk());
    const auto output = tensor::SafetensorsFile::Open(round.output());
    int64_t n = 0;
    std::memcpy(&n, output->Data(*output->header().Find("n")).data(), 8);
    EXPECT_EQ(n, 18) << algorithm;  // 17.5, half to even
  }
  ASSERT_THAT(round.Run({"FedAdam", {}}), IsOk());
  const auto& state = round.Open(round.state());
  EXPECT_EQ(state.header().tensors().size(), 2u);
  EXPECT_EQ(state.header().Find("m/w")->dtype, DType::kF32);
}

TEST(Algorithms, NovaNormalizesByLocalSteps) {
  // x₁ − g = 1 in 2 steps with n = 10; x₂ − g = 10 in 10 steps with n = 30:
  // τ_eff = (10·2 + 30·10)/40 = 8; Σ pᵢdᵢ = 0.25·0.5 + 0.75·1 = 0.875; Δ = 7.
  RoundFolder round;
  round.SetGlobal(F64Model({100}));
  round.AddUpdate("a", 10, F64Model({101}), 2);
  round.AddUpdate("b", 30, F64Model({110}), 10);
  ASSERT_THAT(round.Run({"FedNova", {}}), IsOk());
  EXPECT_NEAR(round.Values("w").front(), 107, 1e-12);
  ASSERT_THAT(round.Run({"FedNova", {{"serverLearningRate", "0.5"}}}), IsOk());
  EXPECT_NEAR(round.Values("w").front(), 103.5, 1e-12);
}

TEST(Algorithms, NovaWithEqualStepsIsFedAvgToTheBit) {
  base::SeededRandom random({61});
  RoundFolder round;
  const auto model = [&] {
    std::vector<double> values(777);
    for (double& value : values) value = random.Normal();
    return F32Model(values);
  };
  round.SetGlobal(model());
  for (const char* client : {"a", "b", "c"}) {
    round.AddUpdate(client, static_cast<double>(1 + random.Below(100)), model(), 7);
  }
  ASSERT_THAT(round.Run({"FedNova", {}}), IsOk());
  const std::string nova = round.OutputBytes();
  ASSERT_THAT(round.Run({"FedAvg", {}}), IsOk());
  EXPECT_EQ(round.OutputBytes(), nova);
}

TEST(Algorithms, NovaRejectsUpdatesWithoutSteps) {
  RoundFolder round;
  round.SetGlobal(F32Model({0}));
  round.AddUpdate("a", 1, F32Model({1}), 0);
  round.AddUpdate("b", 1, F32Model({3}), -2);
  round.AddUpdate("c", 1, F32Model({5}), 4);
  ASSERT_THAT(round.Run({"FedNova", {}}), IsOk());
  ASSERT_EQ(round.report.rejected.size(), 2u);
  EXPECT_THAT(round.report.rejected[0].reason, HasSubstr("local steps is 0"));
  EXPECT_THAT(round.Values("w"), ElementsAre(5));
}

TEST(Algorithms, AStepThatLeavesTheDtypeIsAnErrorNotAnInfinity) {
  for (const DType dtype :
       {DType::kF8E4M3, DType::kF8E5M2, DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    double largest = 1;
    std::vector<uint8_t> bytes(8);
    while (true) {
      const double twice = largest * 2;
      if (tensor::EncodeFromDouble(dtype, &twice, 1, bytes.data()) > 0) break;
      largest = twice;
    }
    RoundFolder round;
    round.SetGlobal({FloatTensor("u", dtype, {1}, {0}), FloatTensor("w", dtype, {1}, {0})});
    round.AddUpdate("a", 1,
                    {FloatTensor("u", dtype, {1}, {1}), FloatTensor("w", dtype, {1}, {largest})});
    ASSERT_THAT(base::WriteFileAtomically(round.output(), "before"), IsOk());
    EXPECT_THAT(round.Run({"FedAvg", {{"serverLearningRate", "3"}}}),
                StatusIs(Code::kFailedPrecondition,
                         AllOf(HasSubstr("tensor \"w\""),
                               HasSubstr("range of " + std::string(tensor::Name(dtype))))));
    EXPECT_EQ(round.OutputBytes(), "before");
    EXPECT_TRUE(round.report.rejected.empty());
    // The mean itself fits.
    EXPECT_THAT(round.Run({"FedAvg", {}}), IsOk());
  }
  // A second moment that F32 does not hold.
  RoundFolder round;
  round.SetGlobal(F32Model({0}));
  round.AddUpdate("a", 1, F32Model({1e30}));
  EXPECT_THAT(round.Run({"FedAdagrad", {}}), StatusIs(Code::kFailedPrecondition));
  EXPECT_FALSE(std::filesystem::exists(round.state()));
}

TEST(Algorithms, AGlobalModelThatIsNotFiniteIsNamed) {
  RoundFolder round;
  round.SetGlobal(F32Model({1, std::nan("")}));
  round.AddUpdate("a", 1, F32Model({1, 2}));
  EXPECT_THAT(round.Run({"FedAvgM", {}}),
              StatusIs(Code::kFailedPrecondition,
                       AllOf(HasSubstr("the global model"), HasSubstr("element 1"))));
  // Where it is not used, it does no harm.
  EXPECT_THAT(round.Run({"FedAvg", {}}), IsOk());
}

TEST(Algorithms, StatesOfSomethingElseAreRefused) {
  RoundFolder round;
  round.SetGlobal(F32Model({1}));
  round.AddUpdate("a", 1, F32Model({2}));
  ASSERT_THAT(round.Run({"FedAdam", {}}), IsOk());
  round.request.state = &round.Open(round.state());
  EXPECT_THAT(round.Run({"FedYogi", {}}),
              StatusIs(Code::kInvalidArgument, HasSubstr("belongs to \"FedAdam\"")));
  round.request.state = &round.Add(F32Model({1}));
  EXPECT_THAT(round.Run({"FedAdam", {}}),
              StatusIs(Code::kInvalidArgument, HasSubstr("is not the state")));
  RoundFolder other;
  other.SetGlobal(F32Model({1, 2}));
  other.AddUpdate("a", 1, F32Model({2, 3}));
  other.request.state = &round.Open(round.state());
  EXPECT_THAT(other.Run({"FedAdam", {}}),
              StatusIs(Code::kInvalidArgument, HasSubstr("another model: tensor \"m/w\"")));
}

// The state is read from the path that the next one is written to, as `fl aggregate --state` does.
TEST(Algorithms, TheStateMayBeReplacedInPlace) {
  RoundFolder in_place;
  RoundFolder apart;
  for (RoundFolder* round : {&in_place, &apart}) {
    round->SetGlobal(F32Model({1}));
    round->AddUpdate("a", 1, F32Model({2}));
    ASSERT_THAT(round->Run({"FedAdam", {}}), IsOk());
    if (round == &apart) {
      std::filesystem::copy(round->state(), round->path() / "kept");
      round->request.state = &round->Open(round->path() / "kept");
    } else {
      round->request.state = &round->Open(round->state());
    }
    ASSERT_THAT(round->Run({"FedAdam", {}}), IsOk());
  }
  EXPECT_EQ(in_place.report.state->digest, apart.report.state->digest);
  EXPECT_EQ(in_place.report.output.digest, apart.report.output.digest);
}

}  // namespace
}  // namespace fl::strategy
