// Prompt tokens as Python gives them: a list, tuple or range of integers, or a one-dimensional
// buffer of integers. A contiguous int32 buffer is used in place, without a copy; everything else
// is converted once.
//
// Made, used and destroyed with the GIL held, except for ids(), which a call may read without it:
// the exported buffer keeps its memory in place as long as this object lives.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace conductor::python {

class TokenIds {
 public:
  // Throws TypeError (through pybind11) for anything that holds no integers; a bool is none. An
  // integer outside int32 is no exception: see problem().
  explicit TokenIds(pybind11::handle source);
  ~TokenIds();
  TokenIds(const TokenIds&) = delete;
  TokenIds& operator=(const TokenIds&) = delete;

  // Empty, or which id does not fit: "token_ids[3]: expected ...".
  const std::string& problem() const { return problem_; }
  long long problem_index() const { return problem_index_; }
  std::span<const std::int32_t> ids() const { return ids_; }

 private:
  void FromItems(PyObject* sequence);  // a list or tuple
  // The plain small ints at the start of it; returns how many they are.
  Py_ssize_t TakePlain(PyObject* sequence);
  void FromBuffer(PyObject* object);
  template <typename Integer>
  void FromElements();
  // False when the item does not fit.
  bool Append(PyObject* item, Py_ssize_t index);
  void SetProblem(Py_ssize_t index, const std::string& got);

  std::vector<std::int32_t> copied_;
  Py_buffer buffer_{};
  bool has_buffer_ = false;
  std::span<const std::int32_t> ids_;  // into copied_ or buffer_
  std::string problem_;
  long long problem_index_ = -1;
};

}  // namespace conductor::python
