#include "proto/grpc/endpoint.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "pipeyard/v1/agent.grpc.pb.h"

namespace pipeyard::grpc_edge {
namespace {

Result<std::unique_ptr<Server>> Listen(const std::string& address, bool is_insecure_allowed) {
  static v1::AgentService::Service service;
  grpc::Service* const services[] = {&service};
  return BuildServer({address, is_insecure_allowed}, services);
}

TEST(Endpoint, APortIsDrawnWhereNoneIsNamed) {
  const auto server = Listen("127.0.0.1:0", false);

  ASSERT_TRUE(server.ok()) << server.status().ToString();
  EXPECT_GT((*server)->port(), 0);
  EXPECT_EQ((*server)->address(), "127.0.0.1:" + std::to_string((*server)->port()));
}

TEST(Endpoint, ATakenPortIsAClearError) {
  const auto first = Listen("127.0.0.1:0", false);
  ASSERT_TRUE(first.ok()) << first.status().ToString();

  const auto second = Listen((*first)->address(), false);

  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(second.status().message(), "listen on " + (*first)->address() +
                                           ": EADDRINUSE (Address already in use): another "
                                           "program has this port");
}

TEST(Endpoint, APortIsFreeAgainAfterShutdown) {
  std::string address;
  {
    const auto first = Listen("127.0.0.1:0", false);
    ASSERT_TRUE(first.ok()) << first.status().ToString();
    address = (*first)->address();
  }

  const auto second = Listen(address, false);

  EXPECT_TRUE(second.ok()) << second.status().ToString();
}

TEST(Endpoint, AnAddressThatIsNotLoopbackNeedsInsecure) {
  for (const char* address : {"0.0.0.0:7420", "[::]:7420", "192.0.2.1:7420", "build-host:7420"}) {
    const auto server = Listen(address, false);

    ASSERT_FALSE(server.ok()) << address;
    EXPECT_EQ(server.status().code(), StatusCode::kFailedPrecondition) << address;
    EXPECT_TRUE(server.status().message().starts_with(std::string("binding ") + address +
                                                      " needs --insecure"))
        << server.status().message();
  }
}

TEST(Endpoint, InsecureAllowsEveryAddress) {
  const auto server = Listen("0.0.0.0:0", true);

  EXPECT_TRUE(server.ok()) << server.status().ToString();
}

TEST(Endpoint, AMalformedAddressIsRefused) {
  for (const char* address :
       {"", ":", "7420", "127.0.0.1", "127.0.0.1:", ":7420", "[]:1", "127.0.0.1:x", "127.0.0.1:-1",
        "127.0.0.1:65536", "127.0.0.1:99999999999999999999", "::1:7420", "127.0.0.1:1 "}) {
    const auto server = Listen(address, true);

    ASSERT_FALSE(server.ok()) << address;
    EXPECT_EQ(server.status().code(), StatusCode::kInvalidArgument) << address;
  }
}

TEST(Endpoint, AnAddressOfAnotherMachineIsAClearError) {
  const auto server = Listen("192.0.2.1:7420", true);

  ASSERT_FALSE(server.ok());
  EXPECT_EQ(server.status().message(),
            "listen on 192.0.2.1:7420: EADDRNOTAVAIL (Cannot assign requested address)");
}

TEST(Endpoint, LoopbackIsToldFromOtherAddresses) {
  for (const char* host : {"127.0.0.1", "127.1.2.3", "::1", "localhost"}) {
    EXPECT_TRUE(IsLoopback(host)) << host;
  }
  for (const char* host : {"", "0.0.0.0", "::", "128.0.0.1", "localhost.example", "127.0.0.1.x"}) {
    EXPECT_FALSE(IsLoopback(host)) << host;
  }
}

TEST(Endpoint, StatusCrossesTheBorderUnchanged) {
  for (int code = 0; code <= 16; ++code) {
    const std::string text = code == 0 ? "" : "spool: disk full";
    const Status status(static_cast<StatusCode>(code), text);

    EXPECT_EQ(static_cast<int>(ToGrpc(status).error_code()), code);
    EXPECT_EQ(FromGrpc(ToGrpc(status)), status);
  }
}

TEST(Endpoint, TheFileLimitIsRaisedAndNeverLowered) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low{64, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);

  const Result<uint64_t> raised = RaiseFileLimit(256);
  const Result<uint64_t> kept = RaiseFileLimit(100);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);

  ASSERT_TRUE(raised.ok());
  EXPECT_EQ(*raised, 256u);
  ASSERT_TRUE(kept.ok());
  EXPECT_EQ(*kept, 256u);
}

TEST(CheckDialAddress, WhatCannotBeDialedIsRefused) {
  for (const char* good : {"127.0.0.1:7420", "[::1]:7420", "some-host:1", "localhost:65535"}) {
    EXPECT_TRUE(CheckDialAddress(good).ok()) << good;
  }
  for (const char* bad :
       {"", "foo", "127.0.0.1", "127.0.0.1:99999", "127.0.0.1:0", ":7420", "::1:7420"}) {
    EXPECT_EQ(CheckDialAddress(bad).code(), StatusCode::kInvalidArgument) << bad;
  }
}

}  // namespace
}  // namespace pipeyard::grpc_edge
