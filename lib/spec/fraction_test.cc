#include "spec/fraction.h"

#include <gtest/gtest.h>

#include <regex>

#include "base/testing/status_matchers.h"

namespace fl::spec {
namespace {

TEST(Fraction, KeepsItsTextAndTheNearestDouble) {
  for (const auto& [text, value] :
       std::vector<std::pair<std::string, double>>{{"0", 0.0},
                                                   {"0.1", 0.1},
                                                   {"1.0", 1.0},
                                                   {"-2.5", -2.5},
                                                   {"1e-5", 1e-5},
                                                   {"1E+3", 1000.0},
                                                   {"00.5", 0.5},
                                                   {"0e99", 0.0},
                                                   {"1e-300", 1e-300},
                                                   {"0.30000000000000004", 0.1 + 0.2}}) {
    const base::Result<Fraction> fraction = Fraction::Parse(text);
    ASSERT_THAT(fraction, base::IsOk()) << text;
    EXPECT_EQ(fraction->text(), text);
    EXPECT_EQ(fraction->value(), value) << text;
  }
}

TEST(Fraction, B28_WhatIsNoFiniteDecimalIsRefused) {
  for (const char* text :
       {"",    " ",     " 1",     "1 ",     "+1",  ".5",   "5.",   "1.e3",     "1e",      "1e+",
        "--1", "nan",   "NaN",    ".nan",   "inf", "-inf", ".inf", "Infinity", "0x1",     "1_000",
        "1,5", "1e400", "-1e400", "1e-400", "1/3", "10%",  "0.1f", "one",      "\xD9\xA1"}) {
    EXPECT_THAT(Fraction::Parse(text), base::StatusIs(base::Code::kInvalidArgument)) << text;
  }
  EXPECT_THAT(Fraction::Parse(std::string_view("1\0", 2)), testing::Not(base::IsOk()));
  EXPECT_THAT(Fraction::Parse(std::string(32, '1')), base::IsOk());
  EXPECT_THAT(Fraction::Parse(std::string(33, '1')), testing::Not(base::IsOk()));
}

TEST(Fraction, FollowsThePatternOfTheCrds) {
  const std::regex pattern{std::string(Fraction::kPattern)};
  for (const char* text :
       {"0",    "-0",    "1",  "01",  "1.", ".1", "1.5", "1.5.5", "1e5", "1e",
        "1e+5", "1e--5", "-1", "--1", "+1", "e5", "1x",  "",      "-",   "1E5"}) {
    EXPECT_EQ(Fraction::Parse(text).ok(), std::regex_match(text, pattern)) << text;
  }
}

TEST(Fraction, EqualMeansWrittenAlike) {
  EXPECT_EQ(*Fraction::Parse("1.0"), *Fraction::Parse("1.0"));
  EXPECT_NE(*Fraction::Parse("1"), *Fraction::Parse("1.0"));
  EXPECT_EQ(Fraction(), *Fraction::Parse("0"));
}

}  // namespace
}  // namespace fl::spec
