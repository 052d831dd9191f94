#include "spec/parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <ctime>
#include <fstream>

#include "spec/internal/yaml_reader.h"
#include "spec/json.h"

namespace fl::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string Job(const std::string& name, const std::string& more = "") {
  return "apiVersion: kubefl.dev/v1alpha1\nkind: FederatedLearningJob\nmetadata: {name: " + name +
         "}\nspec:\n  modelRef: {name: m}\n  rounds: 5\n  trainer: {builtin: mlp}\n" + more;
}

std::vector<std::string> Names(const ParseResult& result) {
  std::vector<std::string> names;
  for (const Problem& problem : result.problems) names.push_back(problem.ToString());
  for (const Document& document : result.documents) {
    names.push_back(MetadataOf(document.object).name);
  }
  return names;
}

std::string Unescape(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char next = text[i] == '\\' && i + 1 < text.size() ? text[i + 1] : '\0';
    if (next == 'n' || next == 't' || next == '\\') {
      out += next == 'n' ? '\n' : next == 't' ? '\t' : '\\';
      ++i;
    } else {
      out += text[i];
    }
  }
  return out;
}

/// Equal where JSON does not tell 1 from 1.0.
bool SameJson(const Value& a, const Value& b) {
  const auto number = [](const Value& value) -> std::optional<double> {
    if (const int64_t* integer = value.As<int64_t>()) return static_cast<double>(*integer);
    if (const double* real = value.As<double>()) return *real;
    return std::nullopt;
  };
  if (number(a) && number(b)) return *number(a) == *number(b);
  if (a.is_list() && b.is_list()) {
    const auto& left = *a.As<Value::List>();
    const auto& right = *b.As<Value::List>();
    return std::equal(left.begin(), left.end(), right.begin(), right.end(), SameJson);
  }
  if (a.is_map() && b.is_map()) {
    const auto& left = *a.As<Value::Map>();
    const auto& right = *b.As<Value::Map>();
    return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                      [](const auto& x, const auto& y) {
                        return x.first == y.first && SameJson(x.second, y.second);
                      });
  }
  return a == b;
}

TEST(Yaml, IsReadAsKubectlReadsIt) {
  std::ifstream file(std::string(FL_TESTDATA) + "/scalars.tsv");
  int rows = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    SCOPED_TRACE(line);
    ++rows;
    const size_t first = line.find('\t');
    const size_t second = line.find('\t', first + 1);
    ASSERT_NE(second, std::string::npos);
    const std::string yaml = Unescape(line.substr(0, first));
    const std::string theirs = line.substr(first + 1, second - first - 1);
    const std::string note = line.substr(second + 1);

    const std::vector<internal::Tree> trees = internal::ReadYaml(yaml);
    bool refused = false;
    for (const internal::Tree& tree : trees) refused = refused || !tree.problems.empty();
    if (note == "stricter") {
      EXPECT_TRUE(refused);
    } else if (note == "laxer") {
      EXPECT_FALSE(refused);
      EXPECT_EQ(theirs, "ERROR");
    } else if (theirs == "ERROR") {
      EXPECT_TRUE(refused);
    } else {
      ASSERT_THAT(trees, SizeIs(1));
      ASSERT_FALSE(refused) << trees[0].problems[0].ToString();
      const base::Result<Value> expected = ParseJson(theirs);
      ASSERT_TRUE(expected.ok()) << expected.status().ToString();
      EXPECT_TRUE(SameJson(trees[0].root, *expected)) << trees[0].root.ToJson();
    }
  }
  EXPECT_GT(rows, 250);
}

TEST(ParseYaml, B43_EverySeparatorGivesTheSameObjects) {
  const std::string a = Job("a");
  const std::string b = Job("b");
  const std::string c = Job("c");
  const std::string plain = a + "---\n" + b + "---\n" + c;
  std::string crlf;
  for (const char byte : plain) crlf += byte == '\n' ? std::string("\r\n") : std::string(1, byte);
  std::string carriage_returns = plain;
  std::replace(carriage_returns.begin(), carriage_returns.end(), '\n', '\r');
  const std::vector<std::string> variants{
      plain,
      a + "---\n" + b + "--- # something\n" + c,
      "# a comment\n---\n---\n" + plain,
      "---\n" + plain + "---\n",
      "# a\n\n---\n# b\n---\n" + plain + "\n---\n# the end\n",
      crlf,
      carriage_returns,
      "\xEF\xBB\xBF" + plain,
      "\xEF\xBB\xBF---\r\n" + crlf,
      a + "...\n---\n" + b + "...\n" + c + "...\n",
      a + "... # done\n--- # next\n" + b + "---\t\n" + c,
      a + "---\n" + b + "---\n" + c.substr(0, c.size() - 1),
      "%YAML 1.1\n---\n" + plain,
      a + "---\n" + b +
          "--- {apiVersion: kubefl.dev/v1alpha1, kind: FederatedLearningJob, "
          "metadata: {name: c}, spec: {modelRef: {name: m}, rounds: 5, trainer: {builtin: mlp}}}\n",
      a + "---\n" + ToJson(ParseYaml(b, "").documents.at(0).object) + "\n---\n" +
          ToJson(ParseYaml(c, "").documents.at(0).object),
  };
  const ParseResult expected = ParseYaml(plain, "f");
  ASSERT_THAT(Names(expected), ElementsAre("a", "b", "c"));
  for (const std::string& variant : variants) {
    SCOPED_TRACE(variant);
    const ParseResult result = ParseYaml(variant, "f");
    ASSERT_THAT(Names(result), ElementsAre("a", "b", "c"));
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(result.documents[i].object, expected.documents[i].object);
    }
  }
}

TEST(ParseYaml, B43_BlockTextWithDashesIsKept) {
  const std::string text =
      Job("a", "  # c\n").insert(0, "") +
      "  aggregation: {algorithm: FedAvg}\n"
      "---\n"
      "apiVersion: kubefl.dev/v1alpha1\nkind: FederatedClient\nmetadata:\n  name: c\n"
      "  annotations:\n    script: |\n      first\n      ---\n      ...\n      --- # x\n      "
      "last\n"
      "spec: {type: Pod, pod: {image: x}}\n";
  for (const bool crlf : {false, true}) {
    std::string variant;
    for (const char byte : text) {
      if (crlf && byte == '\n') variant += '\r';
      variant += byte;
    }
    const ParseResult result = ParseYaml(variant, "f");
    ASSERT_THAT(Names(result), ElementsAre("a", "c"));
    EXPECT_EQ(MetadataOf(result.documents[1].object).annotations.at("script"),
              "first\n---\n...\n--- # x\nlast\n");
  }
}

TEST(ParseYaml, B43_EmptyTextsHaveNoObjectsAndNoProblems) {
  for (const char* text : {"", "\n", "# only a comment", "---", "---\n---\n", "--- # a\n...\n",
                           "\xEF\xBB\xBF", "null\n", "--- ~\n", "\r\n# a\r\n"}) {
    EXPECT_THAT(Names(ParseYaml(text, "f")), IsEmpty()) << text;
  }
}

TEST(ParseYaml, B43_NoBadDocumentIsSkipped) {
  const std::string good = Job("good");
  for (const char* bad : {"a: [", "a\nb: 1", "--- text", "rounds: 5", "a: 1\n  b: 2", "%FOO\n", "]",
                          "- 1", "a: *x", "\"open"}) {
    for (const std::string& text : {good + "---\n" + bad, std::string(bad) + "\n---\n" + good,
                                    good + "---\n" + bad + "\n---\n" + Job("other")}) {
      EXPECT_FALSE(ParseYaml(text, "f").problems.empty()) << text;
    }
  }
  // The others are read all the same, so that all problems come at once.
  const ParseResult result = ParseYaml("a: [\n---\n" + good + "---\nb: 1\n", "f");
  EXPECT_THAT(result.documents, SizeIs(1));
  EXPECT_GE(result.problems.size(), 2U);
}

TEST(ParseYaml, ProblemsSayFileLineAndPath) {
  const std::string text = Job("a") + "---\n# one more\n" + Job("b") +
                           "  roundPolicy:\n    deadlineSeconds: soon\n  bogus:\n    - 1\n";
  const ParseResult result = ParseYaml(text, "jobs.yaml");
  ASSERT_THAT(result.problems, SizeIs(2));
  EXPECT_EQ(result.problems[0].ToString(),
            "jobs.yaml:18: spec.roundPolicy.deadlineSeconds: must be a whole number, not a string: "
            "take the quotes off");
  EXPECT_THAT(result.problems[1].ToString(), HasSubstr("jobs.yaml:19: spec.bogus: unknown field"));
  EXPECT_THAT(result.documents, SizeIs(1));
}

TEST(ParseYaml, ProblemsInJsonHaveLinesToo) {
  const ParseResult result = ParseYaml(
      "{\"apiVersion\": \"kubefl.dev/v1alpha1\",\n \"kind\": \"FederatedLearningJob\",\n"
      " \"metadata\": {\"name\": \"a\"},\n \"spec\": {\n  \"modelRef\": {\"name\": \"m\"},\n"
      "  \"rounds\": 0\n,\n  \"trainer\": {\"builtin\": \"mlp\"},\n  \"trainer\": {}\n}}\n",
      "job.json");
  ASSERT_THAT(result.problems, SizeIs(2));
  EXPECT_THAT(result.problems[0].ToString(), HasSubstr("job.json:6: spec.rounds: must be from 1"));
  EXPECT_THAT(result.problems[1].ToString(),
              HasSubstr("job.json:9: spec.trainer: the key stands twice, first on line 8"));
}

TEST(ParseYaml, SurrogatePairsOfJson) {
  const ParseResult result = ParseYaml(
      R"({"apiVersion": "kubefl.dev/v1alpha1", "kind": "FederatedClient", "metadata": {"name": "a",
          "annotations": {"note": "\ud83d\ude00\/"}}, "spec": {"type": "Pod", "pod": {"image": "x"}}})",
      "f");
  ASSERT_THAT(Names(result), ElementsAre("a"));
  EXPECT_EQ(MetadataOf(result.documents[0].object).annotations.at("note"), "\xF0\x9F\x98\x80/");
}

TEST(ParseYaml, ListsCountAsTheirItems) {
  std::string list = "apiVersion: v1\nkind: List\nmetadata: {resourceVersion: \"\"}\nitems:\n";
  for (const char* name : {"a", "b"}) {
    list += std::string(
                "- apiVersion: kubefl.dev/v1alpha1\n  kind: FederatedClient\n"
                "  metadata: {name: ") +
            name + "}\n  spec: {type: Pod, pod: {image: x}}\n";
  }
  EXPECT_THAT(Names(ParseYaml(list, "f")), ElementsAre("a", "b"));
  const ParseResult bad = ParseYaml(list + "- apiVersion: kubefl.dev/v1alpha1\n  kind: Pod\n", "f");
  ASSERT_FALSE(bad.problems.empty());
  EXPECT_THAT(bad.problems[0].ToString(), HasSubstr("f:14: items[2].kind: must be FederatedModel"));
  EXPECT_FALSE(ParseYaml("apiVersion: v1\nkind: List\n", "f").problems.empty());
}

TEST(ParseYaml, OneNameTwiceIsAProblemAlsoAcrossFiles) {
  const std::string a = Job("a");
  const ParseResult result =
      ParseYaml({{"one.yaml", a}, {"two.yaml", "---\n" + a + "---\n" + Job("b")}});
  ASSERT_THAT(result.problems, SizeIs(1));
  EXPECT_THAT(
      result.problems[0].ToString(),
      HasSubstr("two.yaml:2: metadata.name: there is already a FederatedLearningJob \"a\" at "
                "one.yaml:1"));
  EXPECT_THAT(result.documents, SizeIs(2));
}

TEST(ParseYaml, AnAgentNeedsNoKeyWhereKeysAreMade) {
  const auto client = [](const std::string& spec) {
    return "apiVersion: kubefl.dev/v1alpha1\nkind: FederatedClient\nmetadata: {name: a}\nspec: " +
           spec + "\n";
  };
  const auto read = [](const std::string& text, AgentKeys keys) {
    return Names(ParseYaml({NamedText{"f", text}}, keys));
  };
  const std::string keyless = client("{type: Agent}");
  EXPECT_THAT(read(keyless, AgentKeys::kMade), ElementsAre("a"));
  EXPECT_THAT(read(keyless, AgentKeys::kGiven),
              ElementsAre(HasSubstr("spec.publicKey: is required for type Agent")));
  // All else is checked as ever.
  EXPECT_THAT(read(client("{type: Agent, publicKey: nonsense}"), AgentKeys::kMade),
              ElementsAre(HasSubstr("spec.publicKey")));
  EXPECT_THAT(read(client("{type: Agent, pod: {image: i}}"), AgentKeys::kMade),
              ElementsAre(HasSubstr("spec.pod")));
  EXPECT_THAT(read(client("{type: Agent, colour: red}"), AgentKeys::kMade),
              ElementsAre(HasSubstr("spec.colour")));
}

TEST(ParseYaml, B45_MergeKeysAreHonouredAndTheMapsOwnKeysWin) {
  const std::string text =
      "apiVersion: kubefl.dev/v1alpha1\nkind: FederatedLearningJob\nmetadata: {name: a}\nspec:\n"
      "  modelRef: {name: m}\n  rounds: 5\n  trainer:\n    builtin: mlp\n    config:\n"
      "      base: &base {learningRate: 0.1, batchSize: 10}\n"
      "      other: &other {batchSize: 20, depth: 2}\n"
      "      before: {<<: *base, batchSize: 1}\n"
      "      after:\n        batchSize: 2\n        <<: *base\n"
      "      both: {<<: [*base, *other]}\n";
  const ParseResult result = ParseYaml(text, "f");
  ASSERT_THAT(Names(result), ElementsAre("a"));
  const Value config(
      std::get<FederatedLearningJob>(result.documents[0].object).spec.trainer.config);
  EXPECT_EQ(config.Find("before")->ToJson(), R"({"batchSize":1,"learningRate":0.1})");
  EXPECT_EQ(config.Find("after")->ToJson(), R"({"batchSize":2,"learningRate":0.1})");
  EXPECT_EQ(config.Find("both")->ToJson(), R"({"batchSize":10,"depth":2,"learningRate":0.1})");
  EXPECT_THAT(Value(config).ToJson(), testing::Not(HasSubstr("<<")));
}

TEST(ParseYaml, B45_DuplicateKeysAreRefusedWithTheirLine) {
  const ParseResult result = ParseYaml(Job("a", "  rounds: 5\n"), "f");
  ASSERT_THAT(result.problems, SizeIs(1));
  EXPECT_EQ(result.problems[0].ToString(),
            "f:8: spec.rounds: the key stands twice, first on line 6: remove one of the two");
  EXPECT_THAT(result.documents, IsEmpty());
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kSanitizerCost = 10;
#else
constexpr int kSanitizerCost = 1;
#endif

/// Runs `text` through the parser, which must refuse it within a second of processor time (others
/// may be busy here) and 100 MiB.
void ExpectRefusedQuickly(const std::string& text, const std::string& reason) {
  SCOPED_TRACE(text.substr(0, 60));
  const auto peak_kib = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  const long before = peak_kib();
  const std::clock_t start = std::clock();
  const ParseResult result = ParseYaml(text, "f");
  EXPECT_LT(std::clock() - start, kSanitizerCost * CLOCKS_PER_SEC);
  EXPECT_LT(peak_kib() - before, kSanitizerCost * (100 << 10));
  EXPECT_THAT(result.documents, IsEmpty());
  ASSERT_FALSE(result.problems.empty());
  EXPECT_THAT(result.problems[0].message, HasSubstr(reason));
}

TEST(ParseYaml, B45_NestsAreRefusedBeforeTheyGrow) {
  std::string aliases = "a0: &a0 [x, x]\n";
  std::string merges = "a0: &a0 {x0: 1, y0: 1}\n";
  for (int i = 1; i <= 18; ++i) {
    const std::string n = std::to_string(i);
    const std::string p = std::to_string(i - 1);
    aliases += "a" + n + ": &a" + n + " [*a" + p + ", *a" + p + ", *a" + p + "]\n";
    merges += "a" + n + ": &a" + n + " {x" + n + ": *a" + p + ", y" + n + ": {<<: *a" + p + "}}\n";
  }
  ExpectRefusedQuickly(aliases, "the aliases add up to more than");
  ExpectRefusedQuickly(merges, "the aliases add up to more than");
  std::string long_text = "a: &a \"" + std::string(1 << 20, 'x') + "\"\nb: [*a";
  for (int i = 0; i < 200; ++i) long_text += ", *a";
  ExpectRefusedQuickly(long_text + "]\n", "the aliases add up to more than");

  constexpr int kDeep = 100'000;
  std::string maps;
  std::string items;
  std::string json;
  std::string questions;
  for (int i = 0; i < kDeep; ++i) {
    maps += "{a: ";
    items += "- ";
    json += "{\"a\":";
    questions += "? ";
  }
  ExpectRefusedQuickly(std::string(kDeep, '['), "");
  ExpectRefusedQuickly("a: " + std::string(kDeep, '['), "");
  ExpectRefusedQuickly(std::string(kDeep, '[') + std::string(kDeep, ']'), "nested more than 100");
  ExpectRefusedQuickly(maps, "");
  ExpectRefusedQuickly(maps + std::string(kDeep, '}'), "nested more than 100 deep");
  ExpectRefusedQuickly(items + "a", "nested more than 100 deep");
  ExpectRefusedQuickly(json + "1" + std::string(kDeep, '}'), "nested more than 100 deep");
  ExpectRefusedQuickly(questions + "a", "");
  ExpectRefusedQuickly(std::string(kDeep, '{'), "");
}

TEST(ParseYaml, B45_TabsInTheIndentationAreNamedWithTheirLine) {
  for (const char* text :
       {"a:\n\tb: 1\n", "a:\n  c: 1\n\tb: 1\n", "a:\n \tb: 1\n", "a:\n\t- 1\n",
        "a:\n  - 1\n\t- 2\n", "\ta: 1\n", "a: x\n\ty\n", "a:\n\t\"b\": 1\n", "a:\n\t[1]\n"}) {
    const ParseResult result = ParseYaml(text, "f");
    ASSERT_FALSE(result.problems.empty()) << text;
    const std::string all(text);
    const auto line =
        1 + std::count(all.begin(), all.begin() + static_cast<long>(all.find('\t')), '\n');
    EXPECT_EQ(result.problems[0].ToString(),
              "f:" + std::to_string(line) + ": a tab stands in the indentation: indent with spaces")
        << text;
  }
}

TEST(ParseYaml, TextsThatAreNoYaml) {
  EXPECT_THAT(Names(ParseYaml(std::string("a: \0", 4), "f")),
              ElementsAre(HasSubstr("f:1: there is a control character")));
  EXPECT_THAT(Names(ParseYaml("a: 1\nb: \x80\n", "f")),
              ElementsAre(HasSubstr("f:2: the text is not UTF-8")));
  EXPECT_THAT(Names(ParseYaml("\xFF\xFE"
                              "a",
                              "f")),
              ElementsAre(HasSubstr("not UTF-8")));
  EXPECT_THAT(Names(ParseYaml(std::string(kMaxTextBytes + 1, ' '), "f")),
              ElementsAre(HasSubstr("at most 16777216 are allowed")));
}

TEST(ParseYaml, TrainerConfigKeepsTheTypesOfItsScalars) {
  const ParseResult result = ParseYaml(
      "apiVersion: kubefl.dev/v1alpha1\nkind: FederatedLearningJob\nmetadata: {name: a}\nspec:\n"
      "  modelRef: {name: m}\n  rounds: 5\n  trainer:\n    name: t\n"
      "    config: {i: 1, o: 0777, d: 1.0, e: 1e3, s: \"1\", t: yes, f: off, z: ~, x: 0x10, l: [1, "
      "2.5]}\n",
      "f");
  ASSERT_THAT(Names(result), ElementsAre("a"));
  EXPECT_EQ(
      Value(std::get<FederatedLearningJob>(result.documents[0].object).spec.trainer.config)
          .ToJson(),
      R"({"d":1.0,"e":1000.0,"f":false,"i":1,"l":[1,2.5],"o":511,"s":"1","t":true,"x":16,"z":null})");
}

}  // namespace
}  // namespace fl::spec
