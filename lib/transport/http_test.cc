#include "transport/http.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/testing/status_matchers.h"
#include "base/testing/temporary_directory.h"
#include "transport/serve_file.h"

namespace fl::transport {
namespace {

using base::Code;
using base::IsOk;
using base::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using std::string_literals::operator""s;

TEST(Headers, CompareNamesWithoutCaseAndKeepTheirOrder) {
  Headers headers = {{"Accept", "a"}, {"X-One", "1"}, {"accept", "b"}};
  EXPECT_EQ(headers.Get("ACCEPT"), "a");
  EXPECT_THAT(headers.GetAll("Accept"), ElementsAre("a", "b"));
  EXPECT_EQ(headers.Get("Accep"), std::nullopt);
  headers.Set("ACCEPT", "c");
  EXPECT_THAT(headers, ElementsAre(Pair("X-One", "1"), Pair("ACCEPT", "c")));
  headers.Remove("x-one");
  EXPECT_EQ(headers.size(), 1u);
}

TEST(Headers, NumbersAreDigitsOnly) {
  EXPECT_EQ(Headers({{"N", "18446744073709551615"}}).GetNumber("n").value(), UINT64_MAX);
  for (const std::string bad : {"", " 1", "1 ", "-1", "+1", "0x1", "1.0", "18446744073709551616"}) {
    EXPECT_THAT(Headers({{"N", bad}}).GetNumber("N"),
                StatusIs(Code::kInvalidArgument, HasSubstr("N is \"" + bad + "\"")));
  }
  EXPECT_THAT(Headers().GetNumber("N"), StatusIs(Code::kNotFound, HasSubstr("N")));
}

TEST(Target, IsTakenApart) {
  ASSERT_OK_AND_ASSIGN(
      const Target target,
      Target::Parse("/v1/jobs/a%2Fb/blobs/sha256%3Aab?wait=30&x=%C3%A9+y&flag&=v&wait=31"));
  EXPECT_EQ(target.path, "/v1/jobs/a%2Fb/blobs/sha256%3Aab");
  EXPECT_THAT(target.segments, ElementsAre("v1", "jobs", "a/b", "blobs", "sha256:ab"));
  EXPECT_THAT(target.query, ElementsAre(Pair("wait", "30"), Pair("x", "\xc3\xa9 y"),
                                        Pair("flag", ""), Pair("", "v"), Pair("wait", "31")));
  EXPECT_EQ(target.Parameter("wait"), "30");
  EXPECT_EQ(target.Parameter("none"), std::nullopt);

  EXPECT_THAT(Target::Parse("https://host:1/a/b?c=d")->segments, ElementsAre("a", "b"));
  EXPECT_TRUE(Target::Parse("HTTP://host")->segments.empty());
  EXPECT_TRUE(Target::Parse("/")->segments.empty());
  EXPECT_THAT(Target::Parse("/a/")->segments, ElementsAre("a"));
  EXPECT_THAT(Target::Parse("/a+b")->segments, ElementsAre("a+b"));
}

TEST(Target, WhatCouldLeadAstrayIsRefused) {
  for (const std::string_view bad :
       {std::string_view(""), std::string_view("a"), std::string_view("*"),
        std::string_view("ftp://h/a"), std::string_view("//a"), std::string_view("/a//b"),
        std::string_view("/."), std::string_view("/a/../b"), std::string_view("/%2e%2E/b"),
        std::string_view("/a%"), std::string_view("/a%4"), std::string_view("/a%4g"),
        std::string_view("/a%00b"), std::string_view("/a b"), std::string_view("/a\x7f"),
        std::string_view("/a\0b", 4), std::string_view("/a?b=%zz"), std::string_view("/a#b")}) {
    EXPECT_THAT(Target::Parse(bad), StatusIs(Code::kInvalidArgument, HasSubstr("request"))) << bad;
  }
}

TEST(Target, EncodingIsUndoneByParsing) {
  std::string all;
  for (int c = 1; c < 256; ++c) all += static_cast<char>(c);
  const std::string encoded = PercentEncode(all);
  EXPECT_THAT(Target::Parse("/" + encoded)->segments, ElementsAre(all));
  EXPECT_EQ(Target::Parse("/?k=" + encoded)->Parameter("k"), all);
}

TEST(Errors, GoThereAndBack) {
  const base::Status error(Code::kAborted, "round 3 is over: \"r\"\xff", "ask for the task again");
  const Response response = ErrorResponse(error);
  EXPECT_EQ(response.status, 409);
  EXPECT_EQ(response.headers.Get("content-type"), "application/json");
  const base::Status back = StatusFromResponse(409, std::get<std::string>(response.body));
  EXPECT_EQ(back.code(), Code::kAborted);
  EXPECT_EQ(back.hint(), error.hint());
  EXPECT_THAT(back.message(), HasSubstr("round 3 is over: \"r\""));
  EXPECT_EQ(ErrorResponse(error, 429).status, 429);
}

TEST(Errors, OfOtherServersAreUnderstoodByTheirStatus) {
  EXPECT_THAT(StatusFromResponse(204, ""), IsOk());
  EXPECT_THAT(StatusFromResponse(404, "<html>\nno"),
              StatusIs(Code::kNotFound, HasSubstr("HTTP status 404: <html>")));
  EXPECT_THAT(StatusFromResponse(502, ""), StatusIs(Code::kUnavailable, HasSubstr("502")));
  for (const std::string& body :
       {"{}"s, "[]"s, "{\"error\": 3}"s, "{\"error\": {\"code\": 7}}"s,
        "{\"error\": {\"code\": \"Ok\"}}"s, "{\"error\": {\"code\": \"Strange\"}}"s,
        std::string(1000, '[')}) {
    EXPECT_EQ(StatusFromResponse(403, body).code(), Code::kPermissionDenied) << body;
  }
}

class ServeFileTest : public ::testing::Test {
 protected:
  ServeFileTest() {
    FL_CHECK(base::WriteFileAtomically(folder_ / "file", "0123456789").ok());
    head_.method = "GET";
    options_.etag = "sha256:ab";
    options_.immutable = true;
  }
  Response Serve() { return ServeFile(head_, FileBody::Open(folder_ / "file").value(), options_); }
  static std::string Body(const Response& response) {
    const auto* file = std::get_if<FileBody>(&response.body);
    if (file == nullptr) return std::get<std::string>(response.body);
    std::string text(file->length, '\0');
    EXPECT_EQ(
        ::pread(file->file->get(), text.data(), text.size(), static_cast<off_t>(file->offset)),
        static_cast<ssize_t>(text.size()));
    return text;
  }
  base::TemporaryDirectory folder_;
  RequestHead head_;
  ServeFileOptions options_;
};

TEST_F(ServeFileTest, WholeWithItsValidator) {
  const Response response = Serve();
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(Body(response), "0123456789");
  EXPECT_EQ(response.headers.Get("ETag"), "\"sha256:ab\"");
  EXPECT_EQ(response.headers.Get("Accept-Ranges"), "bytes");
  EXPECT_THAT(std::string(*response.headers.Get("Cache-Control")), HasSubstr("immutable"));
}

TEST_F(ServeFileTest, Ranges) {
  const struct {
    std::string range;
    int status;
    std::string body, content_range;
  } cases[] = {
      {"bytes=0-0", 206, "0", "bytes 0-0/10"},
      {"bytes=2-5", 206, "2345", "bytes 2-5/10"},
      {"bytes=7-", 206, "789", "bytes 7-9/10"},
      {"bytes=7-99999999999999999", 206, "789", "bytes 7-9/10"},
      {"bytes=-3", 206, "789", "bytes 7-9/10"},
      {"bytes=-30", 206, "0123456789", "bytes 0-9/10"},
      {"bytes=10-", 416, "", "bytes */10"},
      {"bytes=-0", 416, "", "bytes */10"},
      {"bytes=5-2", 200, "0123456789", ""},
      {"bytes=0-1,3-4", 200, "0123456789", ""},
      {"bytes=a-b", 200, "0123456789", ""},
      {"bytes=-", 200, "0123456789", ""},
      {"bytes", 200, "0123456789", ""},
      {"lines=0-1", 200, "0123456789", ""},
      {"bytes=18446744073709551616-", 200, "0123456789", ""},
  };
  for (const auto& [range, status, body, content_range] : cases) {
    head_.headers = {{"Range", range}};
    const Response response = Serve();
    EXPECT_EQ(response.status, status) << range;
    if (status != 416) {
      EXPECT_EQ(Body(response), body) << range;
    }
    EXPECT_EQ(response.headers.GetOr("Content-Range", ""), content_range) << range;
  }
}

TEST_F(ServeFileTest, ConditionsAreKept) {
  head_.headers = {{"If-None-Match", "\"other\", W/\"sha256:ab\""}};
  EXPECT_EQ(Serve().status, 304);
  head_.headers = {{"If-None-Match", "*"}};
  EXPECT_EQ(Serve().status, 304);
  head_.headers = {{"If-None-Match", "\"other\""}};
  EXPECT_EQ(Serve().status, 200);
  head_.headers = {{"Range", "bytes=1-2"}, {"If-Range", "\"sha256:ab\""}};
  EXPECT_EQ(Serve().status, 206);
  head_.headers = {{"Range", "bytes=1-2"}, {"If-Range", "\"sha256:old\""}};
  EXPECT_EQ(Serve().status, 200);
}

TEST_F(ServeFileTest, TheFileIsOpenedOnce) {
  FileBody file = FileBody::Open(folder_ / "file").value();
  ASSERT_THAT(base::RemoveFile(folder_ / "file"), IsOk());
  EXPECT_EQ(Body(ServeFile(head_, std::move(file), options_)), "0123456789");
  EXPECT_THAT(FileBody::Open(folder_ / "file"), StatusIs(Code::kNotFound, HasSubstr("file")));
  EXPECT_THAT(FileBody::Open(folder_.path()),
              StatusIs(Code::kInvalidArgument, HasSubstr("not a file")));
}

}  // namespace
}  // namespace fl::transport
