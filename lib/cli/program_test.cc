#include "cli/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/testing/temporary_directory.h"
#include "base/version.h"
#include "cli/testing/run_command.h"

namespace fl::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

void ForEachCommand(const std::function<void(const std::string&, const Command&)>& visit) {
  const std::function<void(const std::string&, const std::vector<Command>&)> walk =
      [&](const std::string& path, const std::vector<Command>& commands) {
        for (const Command& command : commands) {
          visit(path + command.name, command);
          walk(path + command.name + " ", command.commands);
        }
      };
  for (const CommandGroup& group : AllCommands().groups) walk("", group.commands);
}

TEST(Program, EveryCommandHasSummaryExampleAndAct) {
  ForEachCommand([](const std::string& path, const Command& command) {
    SCOPED_TRACE(path);
    EXPECT_FALSE(command.summary.empty());
    EXPECT_FALSE(command.summary.ends_with('.'));
    EXPECT_FALSE(command.examples.empty());
    for (const Example& example : command.examples) EXPECT_THAT(example.line, HasSubstr("fl "));
    const int acts = (command.run != nullptr) + (command.run_raw != nullptr) +
                     (command.commands.empty() ? 0 : 1);
    EXPECT_EQ(acts, 1);
    for (size_t i = 0; i + 1 < command.arguments.size(); ++i) {
      EXPECT_FALSE(command.arguments[i].is_list());
    }
  });
}

// Flags may stand before the command, where it is not known yet whether they take a value.
TEST(Program, AFlagTakesAValueEverywhereOrNowhere) {
  GlobalOptions options;
  std::set<std::string> values;
  std::set<std::string> switches;
  const auto add = [&](const std::vector<Option>& flags) {
    for (const Option& flag : flags) {
      for (const std::string& name : flag.Names()) {
        (flag.is_switch() ? switches : values).insert(name);
      }
    }
  };
  add(GlobalFlags(options));
  ForEachCommand([&](const std::string&, const Command& command) { add(command.flags); });
  values.erase("-f");  // a file, or --follow: as in kubectl
  for (const std::string& name : switches) EXPECT_FALSE(values.contains(name)) << name;
}

TEST(Program, HelpOfEveryCommandShowsUsageAndExamples) {
  ForEachCommand([](const std::string& path, const Command& command) {
    if (command.hidden) return;
    SCOPED_TRACE(path);
    std::vector<std::string> words;
    std::istringstream in(path);
    for (std::string word; in >> word;) words.push_back(word);
    std::vector<std::string> asked = {"help"};
    asked.insert(asked.end(), words.begin(), words.end());
    const CommandResult help = CommandRunner().Run(asked);
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_THAT(help.err, IsEmpty());
    EXPECT_THAT(help.out, HasSubstr("Usage\n  fl " + path));
    EXPECT_THAT(help.out, HasSubstr("Examples"));
    for (const Option& flag : command.flags) EXPECT_THAT(help.out, HasSubstr(flag.Names().back()));
    if (command.run_raw != nullptr) return;
    words.push_back("--help");
    EXPECT_EQ(CommandRunner().Run(words).out, help.out);
  });
}

TEST(Program, HelpListsEveryCommandInItsGroup) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{}, {"help"}, {"--help"}, {"-h"}}) {
    const CommandResult result = CommandRunner().Run(arguments);
    EXPECT_EQ(result.exit_code, 0);
    for (const std::string& name : AllCommands().Names()) {
      EXPECT_THAT(result.out, HasSubstr("\n  " + name + " "));
    }
    EXPECT_THAT(result.out, Not(HasSubstr("__complete")));
  }
}

TEST(Program, UsageErrorsExitFourAndSayWhatToDo) {
  struct Case {
    std::vector<std::string> arguments;
    std::string message;
    std::string hint;
  };
  const std::vector<Case> cases = {
      {{"lst"}, "unknown command \"lst\" for \"fl\"", "did you mean \"list\"?"},
      {{"modles", "list"}, "unknown command \"modles\"", "did you mean \"models\"?"},
      {{"models", "hsitory"},
       "unknown command \"hsitory\" for \"fl models\"",
       "did you mean \"history\"?"},
      {{"xyzzyplugh"}, "unknown command", "fl --help"},
      {{"models"}, "needs a command", "fl models --help"},
      {{"list", "--regsitry", "x"}, "unknown flag --regsitry", "did you mean --registry?"},
      {{"list", "--registry"}, "--registry", ""},
      {{"list", "extra"}, "unexpected argument \"extra\"", "usage: fl list"},
      {{"inspect"}, "FILE is missing", "usage: fl inspect FILE"},
      {{"validate"}, "--filename FILE is missing", ""},
      {{"version", "-o", "xml"}, "unknown output format \"xml\"", "jsonpath=TEMPLATE"},
      {{"version", "-o", "jsonpath={.a"}, "JSON path", ""},
      {{"version", "--color", "sometimes"}, "\"sometimes\" is not one of auto, always, never", ""},
      {{"generate", "job", "--rounds", "ten"}, "--rounds: \"ten\" is not a whole number", ""},
      {{"generate", "job", "--rounds", "99999999999999999999"}, "out of range", ""},
      {{"--frobnicate"}, "no command given", ""},
      {{"list"}, "no place given", "--aggregator URL"},
      {{"models", "list"}, "no place given", "--registry URI"},
      {{"rollback", "m"}, "no place given", "kubectl fl"},
      {{"list", "--aggregator", "https://a", "--registry", "b"}, "exclude each other", ""},
      {{"list", "--aggregator", "fl.example.org"}, "not the URL", "https://"},
      {{"list", "--aggregator", "http://fl.example.org"}, "not encrypted", "--insecure"},
      {{"status", "Not_A_Name", "--registry", "x"}, "job name", ""},
      {{"wait", "job", "--for=later", "--registry", "x"}, "nothing to wait for", ""},
      {{"wait", "job", "--timeout=soon", "--registry", "x"}, "not a duration", ""},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(::testing::PrintToString(one.arguments));
    const CommandResult result = CommandRunner().Run(one.arguments);
    EXPECT_EQ(result.exit_code, 4);
    EXPECT_THAT(result.out, IsEmpty());
    EXPECT_THAT(result.err, StartsWith("fl: error: "));
    EXPECT_THAT(result.err, HasSubstr(one.message));
    if (!one.hint.empty()) {
      EXPECT_THAT(result.err, HasSubstr("hint: "));
    }
    EXPECT_THAT(result.err, HasSubstr(one.hint));
  }
}

TEST(Program, FlagsStandOnBothSidesOfTheCommand) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"version", "-o", "json"},
                                             {"-o", "json", "version"},
                                             {"-ojson", "version"},
                                             {"--output=json", "version"},
                                             {"--color", "never", "version", "-o=json"},
                                             {"version", "-o", "yaml", "-o", "json"}}) {
    SCOPED_TRACE(::testing::PrintToString(arguments));
    const CommandResult result = CommandRunner().Run(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("\"version\": \"" + std::string(base::kVersion) + "\""));
  }
  // A switch for one command and a value for another: a command's name is no file.
  EXPECT_THAT(CommandRunner().Run({"-f", "logs", "digits"}).err, HasSubstr("no place given"));
  EXPECT_THAT(CommandRunner().Run({"-f", "no-such.yaml", "validate"}).err,
              HasSubstr("no-such.yaml"));
}

TEST(Program, OutputFormatsOfOneCommand) {
  const std::string version(base::kVersion);
  EXPECT_EQ(CommandRunner().Run({"version"}).out, "fl " + version + "\n");
  EXPECT_EQ(CommandRunner().Run({"--version"}).out, "fl " + version + "\n");
  EXPECT_EQ(CommandRunner().Run({"version", "-o", "name"}).out, version + "\n");
  EXPECT_EQ(CommandRunner().Run({"version", "-o", "jsonpath={.version}"}).out, version);
  EXPECT_THAT(CommandRunner().Run({"version", "-o", "yaml"}).out,
              HasSubstr("version: " + version + "\n"));
}

TEST(Program, ColorFollowsFlagEnvironmentAndTerminal) {
  const auto colored = [](CommandRunner runner, const std::vector<std::string>& flags) {
    std::vector<std::string> arguments = flags;
    arguments.push_back("nonsense");
    return runner.Run(arguments).err.find('\033') != std::string::npos;
  };
  CommandRunner terminal;
  terminal.terminal = true;
  CommandRunner no_color = terminal;
  no_color.environment = {{"NO_COLOR", "1"}};
  CommandRunner dumb = terminal;
  dumb.environment = {{"TERM", "dumb"}};
  EXPECT_TRUE(colored(terminal, {}));
  EXPECT_FALSE(colored(CommandRunner(), {}));
  EXPECT_FALSE(colored(no_color, {}));
  EXPECT_FALSE(colored(dumb, {}));
}

TEST(Program, DaemonsAreStartedWithTheirOwnArguments) {
  base::TemporaryDirectory folder;
  CommandRunner runner;
  runner.program_directory = folder.path();
  CommandResult result = runner.Run({"agent", "--config", "a.yaml", "--help"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("there is no fl-agentd in " + folder.path().string()));

  ASSERT_TRUE(base::WriteFileAtomically(folder / "fl-agentd", "", 0755).ok());
  result = runner.Run({"agent", "--config", "a.yaml", "--help"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(runner.executed, (std::vector<std::string>{(folder / "fl-agentd").string(), "--config",
                                                       "a.yaml", "--help"}));
}

}  // namespace
}  // namespace fl::cli
