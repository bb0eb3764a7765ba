#include "python/native/token_ids.h"

#if PY_VERSION_HEX < 0x030B0000
#include <longintrepr.h>  // struct _longobject; part of Python.h since 3.11
#endif

#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

namespace conductor::python {
namespace {

namespace py = pybind11;

[[noreturn]] void ThrowType(const std::string& where, PyObject* got) {
  throw py::type_error(where + ", got " + Py_TYPE(got)->tp_name);
}

constexpr char kExpected[] =
    "token_ids: expected a list of int, or a one-dimensional buffer of integers";

// The one letter of a native element type, or 0: a struct, foreign byte order, no integer.
char ElementType(const Py_buffer& buffer) {
  std::string_view format = buffer.format == nullptr ? "B" : buffer.format;
  if (format.size() == 2 && std::string_view("@=<").find(format[0]) != std::string_view::npos) {
    format.remove_prefix(1);
  }
  return format.size() == 1 ? format[0] : '\0';
}

// The value of an int that Python keeps in one digit (30 bits, less on small machines); the vast
// majority of token ids. False: look at it in the general way. A call for each item would cost more
// than all else that is done with it.
bool TryCompact(PyObject* item, std::int32_t* value) {
  auto* const number = reinterpret_cast<PyLongObject*>(item);
#if PY_VERSION_HEX >= 0x030C0000
  if (!PyUnstable_Long_IsCompact(number)) return false;
  const Py_ssize_t compact = PyUnstable_Long_CompactValue(number);
#else
  const Py_ssize_t digits = Py_SIZE(number);  // negative for a negative number
  if (digits < -1 || digits > 1) return false;
  const Py_ssize_t compact = digits * static_cast<Py_ssize_t>(number->ob_digit[0]);
#endif
  static_assert(PyLong_SHIFT <= 30, "one digit must fit a token id");
  *value = static_cast<std::int32_t>(compact);
  return true;
}

}  // namespace

TokenIds::TokenIds(py::handle source) {
  PyObject* object = source.ptr();
  if (PyList_Check(object) || PyTuple_Check(object)) {
    FromItems(object);
  } else if (PyRange_Check(object)) {
    FromItems(py::reinterpret_steal<py::object>(PySequence_List(object)).ptr());
  } else if (PyObject_CheckBuffer(object) && !PyBytes_Check(object) && !PyByteArray_Check(object)) {
    FromBuffer(object);
  } else {
    ThrowType(kExpected, object);
  }
}

TokenIds::~TokenIds() {
  if (has_buffer_) PyBuffer_Release(&buffer_);
}

void TokenIds::SetProblem(Py_ssize_t index, const std::string& got) {
  problem_ =
      "token_ids[" + std::to_string(index) + "]: expected a signed 32-bit integer, got " + got;
  problem_index_ = index;
}

bool TokenIds::Append(PyObject* item, Py_ssize_t index) {
  int overflow = 0;
  const long value = PyLong_AsLongAndOverflow(item, &overflow);
  if (overflow != 0 || value < std::numeric_limits<std::int32_t>::min() ||
      value > std::numeric_limits<std::int32_t>::max()) {
    SetProblem(index, overflow != 0 ? "one beyond 64 bits" : std::to_string(value));
    return false;
  }
  copied_.push_back(static_cast<std::int32_t>(value));
  return true;
}

Py_ssize_t TokenIds::TakePlain(PyObject* sequence) {
  PyObject* const* const items = PySequence_Fast_ITEMS(sequence);
  const Py_ssize_t count = Py_SIZE(sequence);
  copied_.resize(static_cast<std::size_t>(count));
  Py_ssize_t i = 0;
  // Nothing here runs Python code, so the items stay where they are.
  for (; i < count; ++i) {
    if (!PyLong_CheckExact(items[i]) || !TryCompact(items[i], &copied_[i])) break;
  }
  copied_.resize(static_cast<std::size_t>(i));
  return i;
}

void TokenIds::FromItems(PyObject* sequence) {
  const bool is_list = PyList_Check(sequence);
  // The size is read anew each time: __index__ below may run code that shortens the list.
  for (Py_ssize_t i = TakePlain(sequence); i < Py_SIZE(sequence); ++i) {
    PyObject* item = is_list ? PyList_GET_ITEM(sequence, i) : PyTuple_GET_ITEM(sequence, i);
    if (PyLong_CheckExact(item)) {
      if (problem_.empty()) Append(item, i);
      continue;
    }
    const std::string where = "token_ids[" + std::to_string(i) + "]: expected int";
    if (PyBool_Check(item) || !PyIndex_Check(item)) ThrowType(where, item);
    const auto held = py::reinterpret_borrow<py::object>(item);
    const auto number = py::reinterpret_steal<py::object>(PyNumber_Index(held.ptr()));
    if (!number) {
      PyErr_Clear();
      ThrowType(where, held.ptr());
    }
    if (problem_.empty()) Append(number.ptr(), i);
  }
  ids_ = copied_;
}

template <typename Integer>
void TokenIds::FromElements() {
  if (buffer_.itemsize != sizeof(Integer)) {
    throw py::type_error("token_ids: a buffer whose element size contradicts its format");
  }
  const Py_ssize_t count = buffer_.shape[0];
  const Py_ssize_t stride = buffer_.strides[0];
  const char* data = static_cast<const char*>(buffer_.buf);
  copied_.reserve(static_cast<std::size_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    Integer value;
    std::memcpy(&value, data + i * stride, sizeof(value));
    if (!std::in_range<std::int32_t>(value)) {
      SetProblem(i, std::to_string(value));
      break;
    }
    copied_.push_back(static_cast<std::int32_t>(value));
  }
  ids_ = copied_;
}

void TokenIds::FromBuffer(PyObject* object) {
  if (PyObject_GetBuffer(object, &buffer_, PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
    PyErr_Clear();
    ThrowType(kExpected, object);
  }
  has_buffer_ = true;
  // What the constructor throws from here on would skip the destructor.
  struct ReleaseOnThrow {
    TokenIds* self;
    ~ReleaseOnThrow() {
      if (self != nullptr) PyBuffer_Release(&self->buffer_);
    }
  } guard{this};
  if (buffer_.ndim != 1) ThrowType(kExpected, object);
  const char type = ElementType(buffer_);
  const bool in_place = type == 'i' && buffer_.itemsize == sizeof(std::int32_t) &&
                        buffer_.strides[0] == buffer_.itemsize &&
                        reinterpret_cast<std::uintptr_t>(buffer_.buf) % alignof(std::int32_t) == 0;
  if (in_place) {
    ids_ = {static_cast<const std::int32_t*>(buffer_.buf),
            static_cast<std::size_t>(buffer_.shape[0])};
  } else {
    switch (type) {
      case 'h':
        FromElements<short>();
        break;
      case 'H':
        FromElements<unsigned short>();
        break;
      case 'i':
        FromElements<int>();
        break;
      case 'I':
        FromElements<unsigned int>();
        break;
      case 'l':
      case 'q':
        FromElements<long long>();
        break;
      case 'L':
      case 'Q':
        FromElements<unsigned long long>();
        break;
      default:
        ThrowType(kExpected, object);
    }
  }
  guard.self = nullptr;
}

}  // namespace conductor::python
