#include "strategy/select/selector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/testing/status_matchers.h"

namespace fl::strategy {
namespace {

using base::ClientName;
using base::Code;
using base::StatusIs;
using ::testing::HasSubstr;

std::vector<ClientName> Clients(int count) {
  std::vector<ClientName> clients;
  for (int i = 0; i < count; ++i) clients.emplace_back("c" + std::to_string(i));
  return clients;
}

SelectionRequest Round(int64_t round, std::vector<ClientName> candidates) {
  return {base::JobName("digits"), base::RoundNumber(round), 0, std::move(candidates)};
}

std::vector<ClientName> Draw(const SelectionSpec& spec, const SelectionRequest& request,
                             base::RandomSource& secure = base::RandomSource::Secure()) {
  const auto selector = MakeSelector(spec, secure);
  FL_CHECK_MSG(selector.ok(), selector.status().ToString());
  const auto cohort = (*selector)->Select(request);
  FL_CHECK_MSG(cohort.ok(), cohort.status().ToString());
  return *cohort;
}

TEST(Selector, RandomTakesDistinctCandidatesSorted) {
  const std::vector<ClientName> clients = Clients(20);
  for (const std::optional<uint64_t> seed : {std::optional<uint64_t>(7), {}}) {
    for (int64_t size = 1; size <= 25; ++size) {
      const auto cohort = Draw({.clients_per_round = size, .seed = seed}, Round(size, clients));
      EXPECT_EQ(cohort.size(), std::min<size_t>(static_cast<size_t>(size), 20));
      EXPECT_TRUE(std::is_sorted(cohort.begin(), cohort.end()));
      EXPECT_EQ(std::adjacent_find(cohort.begin(), cohort.end()), cohort.end());
      for (const ClientName& client : cohort) EXPECT_THAT(clients, ::testing::Contains(client));
    }
  }
  EXPECT_EQ(Draw({}, Round(1, clients)).size(), 20u);  // 0 takes all
  EXPECT_TRUE(Draw({.clients_per_round = 3}, Round(1, {})).empty());
}

TEST(Selector, ASeedGivesTheSameCohortWhateverTheOrderOfCandidates) {
  const SelectionSpec spec{.clients_per_round = 5, .seed = 7};
  std::vector<ClientName> clients = Clients(30);
  const auto cohort = Draw(spec, Round(3, clients));
  std::reverse(clients.begin(), clients.end());
  EXPECT_EQ(Draw(spec, Round(3, clients)), cohort);
  // Fixed for all time: a job resumed by a later release draws the same.
  EXPECT_EQ(cohort, (std::vector<ClientName>{ClientName("c0"), ClientName("c13"), ClientName("c16"),
                                             ClientName("c18"), ClientName("c7")}));
  // Another round, retry, job or seed draws others (30 choose 5 makes equality unlikely).
  EXPECT_NE(Draw(spec, Round(4, clients)), cohort);
  SelectionRequest other = Round(3, clients);
  other.retry = 1;
  EXPECT_NE(Draw(spec, other), cohort);
  other = Round(3, clients);
  other.job = base::JobName("other");
  EXPECT_NE(Draw(spec, other), cohort);
  EXPECT_NE(Draw({.clients_per_round = 5, .seed = 8}, Round(3, clients)), cohort);
}

TEST(Selector, WithoutASeedTheSecureSourceDecides) {
  base::SeededRandom secure({1});
  base::SeededRandom again({1});
  const SelectionSpec spec{.clients_per_round = 5};
  const auto first = Draw(spec, Round(1, Clients(30)), secure);
  EXPECT_EQ(Draw(spec, Round(1, Clients(30)), again), first);
  EXPECT_NE(Draw(spec, Round(1, Clients(30)), secure), first);
}

// Chi-squared over how often each client and each pair is drawn.
TEST(Selector, RandomIsUniform) {
  const std::vector<ClientName> clients = Clients(6);
  std::map<std::vector<ClientName>, int> counts;
  constexpr int kRounds = 30'000;
  for (int round = 0; round < kRounds; ++round) {
    ++counts[Draw({.clients_per_round = 2, .seed = 11}, Round(round, clients))];
  }
  ASSERT_EQ(counts.size(), 15u);
  double chi_squared = 0;
  for (const auto& [cohort, count] : counts) {
    const double expected = kRounds / 15.0;
    chi_squared += (count - expected) * (count - expected) / expected;
  }
  EXPECT_LT(chi_squared, 36.12);  // 14 degrees of freedom, p = 0.001
}

TEST(Selector, PoissonDrawsEachCandidateByItself) {
  base::SeededRandom secure({5});
  const auto selector =
      MakeSelector({.policy = "Poisson", .sampling_rate = 0.25, .population = 40}, secure);
  ASSERT_TRUE(selector.ok());
  std::map<ClientName, int> drawn;
  std::map<size_t, int> sizes;
  int both = 0;
  constexpr int kRounds = 20'000;
  for (int round = 0; round < kRounds; ++round) {
    ASSERT_OK_AND_ASSIGN(const auto cohort, (*selector)->Select(Round(round, Clients(8))));
    EXPECT_TRUE(std::is_sorted(cohort.begin(), cohort.end()));
    ++sizes[cohort.size()];
    for (const ClientName& client : cohort) ++drawn[client];
    both += std::count(cohort.begin(), cohort.end(), ClientName("c0")) *
            std::count(cohort.begin(), cohort.end(), ClientName("c1"));
  }
  for (const auto& [client, count] : drawn) EXPECT_NEAR(count, kRounds * 0.25, 4 * 61.3);
  EXPECT_NEAR(both, kRounds * 0.0625, 4 * 34.3);                 // independent
  EXPECT_NEAR(sizes[0], kRounds * std::pow(0.75, 8), 4 * 42.5);  // empty cohorts happen
  EXPECT_EQ(Draw({.policy = "Poisson", .sampling_rate = 1.0}, Round(1, Clients(8))).size(), 8u);
}

TEST(Selector, BadSettingsAreNamed) {
  for (const auto& [spec, message] : std::initializer_list<std::pair<SelectionSpec, std::string>>{
           {{.policy = "Oort"}, "unknown selection policy \"Oort\"; offered are Poisson, Random"},
           {{.clients_per_round = -1}, "clientsPerRound"},
           {{.sampling_rate = 0.1}, "samplingRate"},
           {{.population = 10}, "population"},
           {{.policy = "Poisson"}, "needs samplingRate"},
           {{.policy = "Poisson", .sampling_rate = 0.0}, "samplingRate"},
           {{.policy = "Poisson", .sampling_rate = 1.1}, "samplingRate"},
           {{.policy = "Poisson", .sampling_rate = std::nan("")}, "samplingRate"},
           {{.policy = "Poisson", .sampling_rate = INFINITY}, "samplingRate"},
           {{.policy = "Poisson", .sampling_rate = 0.1, .population = 0}, "population"},
           {{.policy = "Poisson", .seed = 1, .sampling_rate = 0.1}, "seed"},
           {{.policy = "Poisson", .clients_per_round = 2, .sampling_rate = 0.1},
            "clientsPerRound"}}) {
    EXPECT_THAT(MakeSelector(spec).status(), StatusIs(Code::kInvalidArgument, HasSubstr(message)));
  }
  EXPECT_EQ(KnownPolicies(), (std::vector<std::string>{"Poisson", "Random"}));
}

TEST(Selector, CandidatesTwiceAndMoreThanThePopulationAreErrors) {
  const auto random = MakeSelector({.clients_per_round = 1});
  EXPECT_THAT((*random)->Select(Round(1, {ClientName("a"), ClientName("a")})),
              StatusIs(Code::kInvalidArgument, HasSubstr("\"a\" is a candidate twice")));
  const auto poisson = MakeSelector({.policy = "Poisson", .sampling_rate = 0.5, .population = 2});
  EXPECT_THAT((*poisson)->Select(Round(1, Clients(3))),
              StatusIs(Code::kFailedPrecondition, HasSubstr("population of 2")));
}

}  // namespace
}  // namespace fl::strategy
