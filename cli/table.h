// A table for people: columns padded to their widest cell, columns of numbers to the
// right. Cells of foreign
// text cannot break the lines. Pure.
#pragma once

#include <string>
#include <vector>

namespace conductor::cli {

class Table {
 public:
  explicit Table(std::vector<std::string> headers);
  // One cell for each header.
  void AddRow(std::vector<std::string> cells);
  std::string ToText() const;

 private:
  std::vector<std::vector<std::string>> rows_;  // the first one are the headers
};

}  // namespace conductor::cli
