#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "spec/internal/tree_builder.h"
#include "spec/internal/utf8.h"
#include "spec/internal/yaml_reader.h"

namespace fl::spec::internal {
namespace {

/// Walks the text and counts the lines before the character that was read last: at a token's event
/// that is the token's own last one, or the one that ended a number.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, int* line) : at_(at), line_(line) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    // nlohmann reads a character, then steps: the step to the next character counts the one left.
    if (line_ != nullptr) {
      if (pending_break_) ++*line_;
      pending_break_ = *at_ == '\n';
    }
    ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) {
    return a.at_ == b.at_;
  }
  friend bool operator!=(const CountingIterator& a, const CountingIterator& b) { return !(a == b); }

 private:
  const char* at_;
  int* line_;
  bool pending_break_ = false;
};

class Handler : public nlohmann::json_sax<nlohmann::json> {
 public:
  Handler(TreeBuilder& tree, const int& line) : tree_(tree), line_(line) {}

  bool null() override { return tree_.Add(Value(), line_); }
  bool boolean(bool value) override { return tree_.Add(Value(value), line_); }
  bool number_integer(number_integer_t value) override { return tree_.Add(Value(value), line_); }
  bool number_unsigned(number_unsigned_t value) override {
    constexpr uint64_t kMax = std::numeric_limits<int64_t>::max();
    return tree_.Add(
        value <= kMax ? Value(static_cast<int64_t>(value)) : Value(static_cast<double>(value)),
        line_);
  }
  bool number_float(number_float_t value, const string_t& /*text*/) override {
    return tree_.Add(Value(value), line_);
  }
  bool string(string_t& value) override { return tree_.Add(Value(std::move(value)), line_); }
  bool binary(binary_t& /*value*/) override { return false; }
  bool start_object(std::size_t /*size*/) override { return tree_.BeginMap(line_); }
  bool key(string_t& key) override {
    tree_.Key(std::move(key), line_);
    return true;
  }
  bool end_object() override {
    tree_.End();
    return true;
  }
  bool start_array(std::size_t /*size*/) override { return tree_.BeginList(line_); }
  bool end_array() override {
    tree_.End();
    return true;
  }
  bool parse_error(std::size_t /*position*/, const std::string& /*last_token*/,
                   const nlohmann::json::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: what"
    message_ = error.what();
    const size_t what = message_.find(": ");
    message_ = "not JSON: " + (what == std::string::npos ? message_ : message_.substr(what + 2));
    return false;
  }
  const std::string& message() const { return message_; }

 private:
  TreeBuilder& tree_;
  const int& line_;
  std::string message_;
};

}  // namespace

Tree ReadJson(std::string_view text, int first_line) {
  Tree result;
  TreeBuilder builder;
  int line = first_line;
  Handler handler(builder, line);
  const CountingIterator begin(text.data(), &line);
  const CountingIterator end(text.data() + text.size(), nullptr);
  result.complete = nlohmann::json::sax_parse(begin, end, &handler);
  result.problems = std::move(builder.problems());
  if (!result.complete) {
    Problem stop = builder.stop();
    if (stop.message.empty()) stop = {"", line, "", handler.message()};
    result.problems.push_back(std::move(stop));
  }
  result.root = builder.TakeRoot();
  return result;
}

}  // namespace fl::spec::internal
