#include "controller/daemon/http_server.h"

#include <gtest/gtest.h>
#include <httplib.h>

#include <memory>
#include <vector>

namespace pipeyard::daemon {
namespace {

HttpContent Content(Status health) {
  return {.health = [health] { return health; },
          .metrics =
              [] {
                return std::vector<Gauge>{{"pipeyard_runs_active", "Runs.", 3}};
              }};
}

httplib::Result Get(const HttpServer& server, const char* path) {
  httplib::Client client("http://" + server.address());
  return client.Get(path);
}

TEST(HttpServer, AnswersHealthAndMetricsOnADrawnPort) {
  const auto server = HttpServer::Start("127.0.0.1:0", Content(Status::Ok()));
  ASSERT_TRUE(server.ok()) << server.status().ToString();

  const auto health = Get(**server, "/healthz");
  const auto metrics = Get(**server, "/metrics");

  ASSERT_TRUE(health);
  EXPECT_EQ(health->status, 200);
  ASSERT_TRUE(metrics);
  EXPECT_EQ(metrics->body,
            "# HELP pipeyard_runs_active Runs.\n# TYPE pipeyard_runs_active gauge\n"
            "pipeyard_runs_active 3\n");
}

TEST(HttpServer, SaysWhatIsWrong) {
  const auto server =
      HttpServer::Start("127.0.0.1:0", Content(ResourceExhausted("the store: disk full")));
  ASSERT_TRUE(server.ok());

  const auto health = Get(**server, "/healthz");

  ASSERT_TRUE(health);
  EXPECT_EQ(health->status, 503);
  EXPECT_EQ(health->body, "the store: disk full\n");
}

TEST(HttpServer, ScrapersThatKeepTheirConnectionsDoNotShutOutTheProbe) {
  const auto server = HttpServer::Start("127.0.0.1:0", Content(Status::Ok()));
  ASSERT_TRUE(server.ok());
  std::vector<std::unique_ptr<httplib::Client>> scrapers;
  for (int i = 0; i < 8; ++i) {
    scrapers.push_back(std::make_unique<httplib::Client>("http://" + (*server)->address()));
    scrapers.back()->set_keep_alive(true);
    const auto metrics = scrapers.back()->Get("/metrics");
    ASSERT_TRUE(metrics) << i;
    EXPECT_EQ(metrics->get_header_value("Connection"), "close");
  }

  EXPECT_TRUE(Get(**server, "/healthz"));
}

TEST(HttpServer, APortInUseIsRefusedWithItsAddress) {
  const auto first = HttpServer::Start("127.0.0.1:0", Content(Status::Ok()));
  ASSERT_TRUE(first.ok());

  const auto second = HttpServer::Start((*first)->address(), Content(Status::Ok()));

  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), StatusCode::kUnavailable);
  EXPECT_NE(second.status().message().find((*first)->address()), std::string::npos);
}

TEST(SplitAddress, ReadsHostAndPort) {
  const struct {
    const char* text;
    const char* host;
    int port;
  } cases[] = {{"127.0.0.1:7421", "127.0.0.1", 7421},
               {"localhost:0", "localhost", 0},
               {"[::1]:65535", "::1", 65535}};
  for (const auto& c : cases) {
    const auto split = SplitAddress(c.text);
    ASSERT_TRUE(split.ok()) << c.text;
    EXPECT_EQ(split->first, c.host);
    EXPECT_EQ(split->second, c.port);
  }
  for (const char* text :
       {"", "7421", ":7421", "a:", "a:b", "a:65536", "a:-1", "::1:7421", "a:1x"}) {
    EXPECT_FALSE(SplitAddress(text).ok()) << text;
  }
}

}  // namespace
}  // namespace pipeyard::daemon
