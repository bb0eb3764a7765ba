#include "cli/log_source.h"

#include <string>
#include <utility>

#include "src/service/conductor_service.h"

namespace conductor::cli {

namespace {

class DaemonLog final : public LogSource {
 public:
  explicit DaemonLog(rpc::RpcClient& client) : client_(client) {}
  Result<Range> GetRange() override {
    CONDUCTOR_ASSIGN_OR_RETURN(const StatusView status, client_.GetStatus());
    return Range{status.log_first, status.log_last};
  }
  Result<Service::LogLines> Read(Seq from, std::uint32_t count_max, StreamId stream) override {
    return client_.InspectLog(from, count_max, stream);
  }

 private:
  rpc::RpcClient& client_;
};

class DirectoryLog final : public LogSource {
 public:
  DirectoryLog(std::string data_dir, std::unique_ptr<storage::RocksDbEventLog> log)
      : data_dir_(std::move(data_dir)), log_(std::move(log)) {}
  Result<Range> GetRange() override { return Range{log_->FirstSeq(), log_->LastSeq()}; }
  Result<Service::LogLines> Read(Seq from, std::uint32_t count_max, StreamId stream) override {
    // An open log shows what was there when it was opened.
    if (from > log_->LastSeq() && at_end_) {
      CONDUCTOR_ASSIGN_OR_RETURN(log_, Ctl::OpenLog(data_dir_));
    }
    at_end_ = from > log_->LastSeq();
    return InspectRecords(*log_, from, count_max, stream);
  }

 private:
  const std::string data_dir_;
  std::unique_ptr<storage::RocksDbEventLog> log_;
  bool at_end_ = false;
};

}  // namespace

Result<std::unique_ptr<LogSource>> OpenLogSource(Ctl& ctl) {
  if (ctl.offline()) {
    CONDUCTOR_ASSIGN_OR_RETURN(auto log, Ctl::OpenLog(ctl.data_dir));
    return std::make_unique<DirectoryLog>(ctl.data_dir, std::move(log));
  }
  CONDUCTOR_ASSIGN_OR_RETURN(rpc::RpcClient * client, ctl.Client());
  return std::make_unique<DaemonLog>(*client);
}

}  // namespace conductor::cli
