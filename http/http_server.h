// The HTTP front end: thin, converts between the bodies of the contract and Service. Start opens
// the port and serves at once; /readyz and the queries say themselves while the log is rebuilt.
// Start and Stop: one thread. Service is called from the server's threads until Stop returns.
//
//   auto server = HttpServer::Start(service, {.listen_address = "127.0.0.1", .port = 0});
//   if (!server) return tl::unexpected(server.error());  // names address, port and reason
//   Announce((*server)->port());
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "src/limits.h"
#include "src/result.h"
#include "src/service.h"

namespace conductor {

struct HttpServerOptions {
  std::string listen_address = "127.0.0.1";
  int port = 0;  // 0: any free one
  Limits limits;
  std::string version, commit;
  // For /version: name -> version of the formats this build writes ("log", "fingerprint").
  std::map<std::string, std::uint32_t> formats;
};

class HttpServer {
 public:
  using Options = HttpServerOptions;

  // `service` must outlive the server. Errors: kInvalidArgument for an address or port that cannot
  // be, kUnavailable for one that is taken or not ours.
  static Result<std::unique_ptr<HttpServer>> Start(Service& service, Options options);
  ~HttpServer();

  std::uint16_t port() const;
  // Ends every connection, idle, slow or not; requests inside Service are waited for.
  void Stop();

 private:
  struct Parts;
  explicit HttpServer(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace conductor
