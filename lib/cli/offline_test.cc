// Commands that need nothing but files.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/keys.h"
#include "base/testing/temporary_directory.h"
#include "cli/testing/run_command.h"

namespace fl::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

CommandResult RunFl(const std::vector<std::string>& arguments, const std::string& in = "") {
  CommandRunner runner{.in = in};
  return runner.Run(arguments);
}

void Write(const base::Path& path, std::string_view text) {
  ASSERT_TRUE(base::WriteFileAtomically(path, text).ok());
}

constexpr const char* kGood =
    "apiVersion: kubefl.dev/v1alpha1\nkind: FederatedModel\nmetadata: {name: digits}\n"
    "spec: {initial: {uri: \"file:v0.safetensors\"}}\n";
constexpr const char* kBad =
    "apiVersion: kubefl.dev/v1alpha1\nkind: FederatedModel\nmetadata: {name: other}\n"
    "spec:\n  initial: {uri: \"file:v0.safetensors\"}\n  colour: red\n";

TEST(Validate, EachProblemIsALineWithFileLineAndPath) {
  base::TemporaryDirectory folder;
  Write(folder / "bad.yaml", kBad);
  const CommandResult result = RunFl({"validate", "-f", (folder / "bad.yaml").string()});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(result.out, StartsWith((folder / "bad.yaml").string() + ":6: spec.colour: "));
  EXPECT_EQ(result.err, "fl: error: 1 problem found\n");
}

TEST(Validate, FilesFoldersAndStandardInput) {
  base::TemporaryDirectory folder;
  Write(folder / "a.yaml", kGood);
  Write(folder / "notes.txt", "not: yaml: at all");
  EXPECT_EQ(RunFl({"validate", "-f", (folder / "a.yaml").string()}).exit_code, 0);
  CommandResult result = RunFl({"validate", "-f", folder.path().string()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, (folder / "a.yaml").string() + ":1: FederatedModel/digits is valid\n");

  result = RunFl({"validate", "-f", "-"}, kBad);
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(result.out, StartsWith("-:6: spec.colour: "));

  // Two files are one set of objects.
  Write(folder / "b.yml", kGood);
  const std::vector<std::vector<std::string>> both = {
      {"validate", "-f", (folder / "a.yaml").string(), "-f", (folder / "b.yml").string()},
      {"validate", "-f", (folder / "a.yaml").string(), (folder / "b.yml").string()},
      {"validate", "-f", folder.path().string()}};
  for (const std::vector<std::string>& arguments : both) {
    result = RunFl(arguments);
    EXPECT_EQ(result.exit_code, 4);
    EXPECT_THAT(result.out, HasSubstr((folder / "b.yml").string() + ":1: "));
  }
}

TEST(Validate, NothingToValidateIsNoSuccess) {
  base::TemporaryDirectory folder;
  for (const char* text : {"", "# only a comment\n", "---\n---\n", "---\n...\n"}) {
    EXPECT_EQ(RunFl({"validate", "-f", "-"}, text).exit_code, 4) << text;
  }
  EXPECT_EQ(RunFl({"validate", "-f", folder.path().string()}).exit_code, 4);
  CommandResult result = RunFl({"validate", "-f", (folder / "none.yaml").string()});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(result.err, HasSubstr("none.yaml"));
}

TEST(Validate, B43_AllDocumentsAreRead) {
  const std::string three = std::string("\xEF\xBB\xBF# header\n---\n---\n") + kGood +
                            "--- # something\n" + kGood + "...\n---\n" + kGood;
  std::string named = three;
  for (const char* name : {"a", "b", "c"}) {
    named.replace(named.find("name: digits"), 12, std::string("name: ") + name);
  }
  for (const bool crlf : {false, true}) {
    std::string text;
    for (const char c : named) text += crlf && c == '\n' ? "\r\n" : std::string(1, c);
    const CommandResult result = RunFl({"validate", "-o", "name", "-f", "-"}, text);
    EXPECT_EQ(result.exit_code, 0) << result.out;
    EXPECT_EQ(result.out, "FederatedModel/a\nFederatedModel/b\nFederatedModel/c\n");
  }
  // One bad document fails all, and says where.
  const CommandResult result = RunFl({"validate", "-f", "-"}, named + "---\n" + kBad);
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(result.out, HasSubstr("spec.colour"));
}

TEST(Generate, WhatIsPrintedIsValid) {
  const std::vector<std::vector<std::string>> commands = {
      {"generate", "job"},
      {"generate", "job", "my-job", "--rounds", "7", "--algorithm", "FedYogi", "--trainer", "mine",
       "--model", "m", "--clients-per-round", "3", "--test-dataset", "file:///t.csv"},
      {"generate", "model", "m", "--initial", "file:m.safetensors", "--model-registry",
       "file:///srv/r"},
      {"generate", "client", "hospital-b", "--image", "x/y:2", "--dataset", "file:///d.csv"}};
  for (const std::vector<std::string>& command : commands) {
    const CommandResult generated = RunFl(command);
    EXPECT_EQ(generated.exit_code, 0) << generated.err;
    EXPECT_THAT(generated.err, IsEmpty());
    const CommandResult checked = RunFl({"validate", "-f", "-"}, generated.out);
    EXPECT_EQ(checked.exit_code, 0) << checked.out << generated.out;
  }
  EXPECT_EQ(RunFl({"generate", "job", "--rounds", "0"}).exit_code, 4);
  EXPECT_EQ(RunFl({"generate", "job", "Bad_Name"}).exit_code, 4);
}

TEST(Generate, AgentConfigOfFlags) {
  const CommandResult result =
      RunFl({"generate", "agent-config", "hospital-a", "--aggregator",
             "https://fl.example.org:8443", "--ca-file", "ca.crt", "--key-file", "a.key",
             "--dataset", "file:///d.csv", "--trainer", "mine=python3 train.py"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const char* line :
       {"\nclient: hospital-a\n", "\naggregator: \"https://fl.example.org:8443\"\n",
        "\ncaFile: ca.crt\n", "\nkeyFile: a.key ", "\ndataset: \"file:///d.csv\"\n",
        "\ntrainers:\n  mine: {command: [\"python3\",\"train.py\"]}\n"}) {
    EXPECT_THAT(result.out, HasSubstr(line));
  }
  EXPECT_EQ(RunFl({"generate", "agent-config"}).exit_code, 4);
  EXPECT_EQ(RunFl({"generate", "agent-config", "a", "--trainer", "nothing"}).exit_code, 4);
}

TEST(Keys, GenerateAndShow) {
  base::TemporaryDirectory folder;
  for (const char* type : {"p384", "ed25519"}) {
    for (const char* format : {"pkcs8", "openssh"}) {
      const std::string file = (folder / (std::string(type) + format)).string();
      const CommandResult made =
          RunFl({"keys", "generate", "--type", type, "--format", format, "--out", file});
      EXPECT_EQ(made.exit_code, 0) << made.err;
      EXPECT_THAT(made.out, MatchesRegex("(ecdsa-sha2-nistp384|ssh-ed25519) [A-Za-z0-9+/=]+\n"));
      struct stat info{};
      ASSERT_EQ(::stat(file.c_str(), &info), 0);
      EXPECT_EQ(info.st_mode & 0777, 0600u);
      EXPECT_EQ(RunFl({"keys", "show", file}).out, made.out);
      EXPECT_THAT(RunFl({"keys", "show", file, "-o", "json"}).out,
                  HasSubstr("\"type\": \"" + std::string(type) + "\""));
      // A public key is shown as it is.
      EXPECT_EQ(RunFl({"keys", "show", "-"}, made.out).out, made.out);
    }
  }
}

TEST(Keys, AKeyIsNotOverwritten) {
  base::TemporaryDirectory folder;
  const std::string file = (folder / "key").string();
  ASSERT_EQ(RunFl({"keys", "generate", "--out", file}).exit_code, 0);
  const std::string before = *base::ReadFile(file);
  const CommandResult again = RunFl({"keys", "generate", "--out", file});
  EXPECT_EQ(again.exit_code, 4);
  EXPECT_THAT(again.err, HasSubstr("--force"));
  EXPECT_EQ(*base::ReadFile(file), before);
  EXPECT_EQ(RunFl({"keys", "generate", "--out", file, "--force"}).exit_code, 0);
  EXPECT_NE(*base::ReadFile(file), before);
}

TEST(Keys, WithoutAFileThePrivateKeyIsTheOutput) {
  const CommandResult made = RunFl({"keys", "generate", "--type", "ed25519"});
  EXPECT_THAT(made.out, StartsWith("-----BEGIN PRIVATE KEY-----"));
  EXPECT_EQ(RunFl({"keys", "show", "-"}, made.out).out, made.err);
}

TEST(Keys, WhatIsNoKeyExitsFour) {
  EXPECT_EQ(RunFl({"keys", "show", "-"}, "hello").exit_code, 4);
  EXPECT_EQ(RunFl({"keys", "show", "/no/such/key"}).exit_code, 4);
  EXPECT_EQ(RunFl({"keys", "generate", "--type", "rsa"}).exit_code, 4);
}

TEST(Doctor, SaysWhatIsMissingAndWhatToDo) {
  base::TemporaryDirectory folder;
  CommandRunner runner{.program_directory = folder.path()};
  CommandResult result = runner.Run({"doctor"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("fail  fl-agentd: not found in " + folder.path().string() +
                                    "; install it beside fl\n"));
  for (const char* program : {"fl-agentd", "fl-aggregatord"}) {
    ASSERT_TRUE(base::WriteFileAtomically(folder / program, "", 0755).ok());
  }
  result = runner.Run({"doctor"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("ok    processor: "));

  result = runner.Run({"doctor", "--registry", (folder / "none").string()});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("fail  registry: "));
  result = runner.Run({"doctor", "--aggregator", "http://127.0.0.1:1", "--insecure"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("fail  aggregator: "));
}

TEST(Complete, CommandsFlagsAndChoices) {
  const auto complete = [](std::vector<std::string> words) {
    words.insert(words.begin(), "__complete");
    return RunFl(words).out;
  };
  EXPECT_THAT(complete({"val"}), StartsWith("validate\t"));
  EXPECT_THAT(complete({""}), HasSubstr("\nmodels\t"));
  EXPECT_THAT(complete({""}), HasSubstr(":4\n"));
  EXPECT_THAT(complete({"models", "h"}), StartsWith("history\t"));
  EXPECT_THAT(complete({"help", "models", "h"}), StartsWith("history\t"));
  EXPECT_EQ(complete({"completion", ""}), "bash\nzsh\nfish\n:4\n");
  EXPECT_EQ(complete({"version", "-o", "js"}), "json\njsonpath=\n:4\n");
  EXPECT_EQ(complete({"version", "--output=y"}), "--output=yaml\n:4\n");
  EXPECT_EQ(complete({"--color", "a"}), "auto\nalways\n:4\n");
  EXPECT_THAT(complete({"aggregate", "--alg"}), StartsWith("--algorithm\t"));
  EXPECT_THAT(complete({"aggregate", "--algorithm", "FedA"}), HasSubstr("FedAdam\n"));
  EXPECT_EQ(complete({"inspect", ""}), ":0\n");
  EXPECT_EQ(complete({"models", "list", "--registry", ""}), ":16\n");
  EXPECT_EQ(complete({"nonsense", ""}), ":4\n");
  EXPECT_EQ(complete({}), complete({""}));
  // A flag that was given once is not offered again.
  EXPECT_EQ(complete({"wait", "x", "--for=failed", "--fo"}), ":4\n");
}

}  // namespace
}  // namespace fl::cli
