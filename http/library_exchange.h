// cpp-httplib without its sockets: one complete request as bytes in, the bytes of the answer out.
// The library parses the request line, headers and query, and writes the answer; connections,
// limits, deadlines and threads are ours (connection_loop.h), because the packaged library holds a
// thread per connection, waits with select() and has its limits compiled in. Plain queries do not
// get as far as the library (plain_exchange.h). Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "http/router.h"
#include "src/result.h"

namespace conductor::http {

struct ExchangeResult {
  std::string bytes;   // the whole answer
  bool close = false;  // the connection ends after it
};

class LibraryExchange {
 public:
  // `router` must outlive this.
  explicit LibraryExchange(const Router& router);
  ~LibraryExchange();

  // `header` as RequestFraming rebuilt it.
  ExchangeResult Run(std::string_view header, std::string body) const;

  // An answer to bytes that are no request of ours; the connection ends after it.
  static std::string WriteRefusal(const HttpReply& reply);

 private:
  class Server;
  std::unique_ptr<Server> server_;
};

}  // namespace conductor::http
