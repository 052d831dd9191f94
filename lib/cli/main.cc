#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>
#include <optional>

#include "base/cancel.h"
#include "base/subprocess.h"
#include "cli/commands/commands.h"
#include "cli/internal/output_stream.h"
#include "cli/program.h"

extern char** environ;

namespace fl::cli {
namespace {

std::map<std::string, std::string> ReadEnvironment() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

base::Status Execute(const std::vector<std::string>& argv) {
  std::vector<char*> pointers;
  for (const std::string& argument : argv) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  std::signal(SIGPIPE, SIG_DFL);
  ::execv(pointers[0], pointers.data());
  const int error = errno;
  std::signal(SIGPIPE, SIG_IGN);
  return base::FromErrno(error, "run " + argv[0]);
}

}  // namespace

int Main(int argc, char** argv) {
  // A descriptor that was closed for us must not become a file that we open.
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
      if (::open("/dev/null", O_RDWR) < 0) return 5;
    }
  }
  std::signal(SIGPIPE, SIG_IGN);
  internal::OutputBuffer out_buffer(STDOUT_FILENO);
  internal::OutputBuffer err_buffer(STDERR_FILENO);
  std::ostream out(&out_buffer);
  std::ostream err(&err_buffer);
  err << std::unitbuf;

  Context context{.in = std::cin, .out = out, .err = err};
  context.out_is_terminal = ::isatty(STDOUT_FILENO) == 1;
  context.err_is_terminal = ::isatty(STDERR_FILENO) == 1;
  winsize size{};
  if (context.out_is_terminal && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
    context.columns = size.ws_col;
  }
  context.environment = ReadEnvironment();
  context.program_directory = base::ExecutableDirectory();
  context.execute = Execute;
  context.output_closed = [&out_buffer] { return out_buffer.error() == EPIPE; };

  std::optional<base::SignalStop> signals;
  try {
    return Run(context, AllCommands(), {argv + 1, argv + argc}, [&](const Command& command) {
      if (!command.interruptible) return;
      signals.emplace();
      context.stop = signals->token();
    });
  } catch (const std::exception& error) {
    PrintError(context, base::Internal(error.what()));
    return base::Describe(base::Code::kInternal).exit_code;
  }
}

}  // namespace fl::cli
