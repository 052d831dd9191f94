#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "tensor/safetensors.h"
#include "tensor/signature.h"
#include "tensor/stream_check.h"
#include "trainer/trainer.h"

namespace fl::trainer {

using base::FailedPrecondition;
using base::Status;

Status CheckOutput(const base::Path& model, const base::Path& output) {
  FL_ASSIGN_OR_RETURN(const tensor::SafetensorsFile global, tensor::SafetensorsFile::Open(model));
  // The trainer may have left a folder, a pipe or nothing; a pipe must not block us.
  const base::UniqueFd fd(::open(output.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid() && errno == ENOENT) {
    return FailedPrecondition("the trainer wrote no weights",
                              "write them to the path in \"output\" of the task");
  }
  if (!fd.valid()) return base::FromErrno(errno, "open the trainer's weights");
  std::error_code error;
  if (!std::filesystem::is_regular_file(output, error)) {
    return FailedPrecondition("what the trainer wrote as weights is not a regular file");
  }
  const uint64_t size = std::filesystem::file_size(output, error);
  tensor::StreamValidator validator(
      {.model = &global.header(), .file_size = size, .require_finite = true});
  const auto explain = [](const Status& status) {
    return FailedPrecondition(
        "the trainer's weights: " + status.message(),
        "they must be a safetensors file with the model's names, shapes and dtypes, and finite");
  };
  std::vector<uint8_t> buffer(size_t{256} << 10);
  while (true) {
    const ssize_t count = ::read(fd.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return base::FromErrno(errno, "read the trainer's weights");
    if (count == 0) break;
    const Status fed = validator.Feed({buffer.data(), static_cast<size_t>(count)});
    if (!fed.ok()) return explain(fed);
  }
  const Status finished = validator.Finish();
  return finished.ok() ? finished : explain(finished);
}

}  // namespace fl::trainer
