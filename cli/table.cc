#include "cli/table.h"

#include <algorithm>
#include <utility>

#include "src/check.h"

namespace conductor::cli {

namespace {

constexpr std::size_t kGap = 2;

// Code points, not bytes: continuation bytes take no column.
std::size_t Width(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

// "-" stands for none.
bool IsNumber(const std::string& text) {
  return text == "-" || (!text.empty() && std::all_of(text.begin(), text.end(),
                                                      [](char c) { return c >= '0' && c <= '9'; }));
}

std::string Clean(std::string text) {
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }, '?');
  return text.empty() ? "-" : text;
}

}  // namespace

Table::Table(std::vector<std::string> headers) {
  rows_.push_back(std::move(headers));
}

void Table::AddRow(std::vector<std::string> cells) {
  CHECK(cells.size() == rows_.front().size());
  for (std::string& cell : cells) cell = Clean(std::move(cell));
  rows_.push_back(std::move(cells));
}

std::string Table::ToText() const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  std::vector<bool> numbers(rows_.front().size(), rows_.size() > 1);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], Width(row[i]));
      if (&row != &rows_.front() && !IsNumber(row[i])) numbers[i] = false;
    }
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - Width(row[i]), ' ');
      line += numbers[i] ? padding + row[i] : row[i] + padding;
      line += std::string(kGap, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace conductor::cli
