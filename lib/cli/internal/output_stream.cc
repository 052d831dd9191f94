#include "cli/internal/output_stream.h"

#include <unistd.h>

#include <cerrno>

namespace fl::cli::internal {

int OutputBuffer::sync() {
  const char* next = pbase();
  while (next < pptr() && error_ == 0) {
    const ssize_t written = ::write(fd_, next, static_cast<size_t>(pptr() - next));
    if (written >= 0) {
      next += written;
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
  // After an error what is left is dropped: there is nobody to give it to.
  setp(buffer_.data(), buffer_.data() + buffer_.size());
  return error_ == 0 ? 0 : -1;
}

OutputBuffer::int_type OutputBuffer::overflow(int_type c) {
  if (sync() != 0) return traits_type::eof();
  if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
  return sputc(traits_type::to_char_type(c));
}

}  // namespace fl::cli::internal
