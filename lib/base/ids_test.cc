#include "base/ids.h"

#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <type_traits>
#include <unordered_set>

namespace fl::base {
namespace {

TEST(Ids, AreTypesOfTheirOwn) {
  static_assert(!std::is_convertible_v<ClientName, JobName>);
  static_assert(!std::is_constructible_v<ClientName, JobName>);
  static_assert(!std::is_convertible_v<std::string, ClientName>);
  static_assert(!std::is_convertible_v<int64_t, RoundNumber>);
  static_assert(!std::is_constructible_v<RoundNumber, VersionNumber>);
}

TEST(Ids, CompareHashAndPrintAsTheirValue) {
  const ClientName a("a"), b("b");
  EXPECT_LT(a, b);
  EXPECT_EQ(a, ClientName("a"));
  EXPECT_TRUE(ClientName().empty());
  EXPECT_EQ(std::unordered_set<ClientName>({a, b, a}).size(), 2U);
  EXPECT_EQ(std::hash<ClientName>()(a), std::hash<std::string>()("a"));
  std::map<RoundNumber, int> rounds{{RoundNumber(10), 1}, {RoundNumber(9), 2}};
  EXPECT_EQ(rounds.begin()->first, RoundNumber(9));  // as numbers, not as text
  EXPECT_EQ(RoundNumber(9).Next(), RoundNumber(10));
  EXPECT_EQ(VersionNumber().value(), 0);
  std::ostringstream out;
  out << a << ' ' << RoundNumber(3);
  EXPECT_EQ(out.str(), "a 3");
}

}  // namespace
}  // namespace fl::base
