// What stands behind the handles of tenon.h, and how its functions begin and end.
#pragma once
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "core/base/diagnostics.hpp"
#include "core/pipeline/pipeline.hpp"
#include "core/runtime/eval.hpp"
#include "core/runtime/session.hpp"
#include "tenon/tenon.h"

namespace tenon::lib {

// Plugins, rules and what computes while optimising. Shared by all that came from it.
struct HostState {
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Evaluator> evaluator;  // goes before the engine
  bool explain = false;
  size_t told = 0;  // findings of the engine that went to the log

  void tell();  // the others, now
};

struct ModelState {
  std::shared_ptr<HostState> host;
  std::unique_ptr<Graph> graph;
  OptimizeReport report;
  std::string path;
  bool optimized = false;
  double load_ms = 0;
  ~ModelState();
};

// A port with the memory its pointers lead to.
struct Port {
  std::string name;
  uint32_t kind = 0;
  tn_dtype dtype = TN_DTYPE_NONE;
  int32_t rank = -1;
  bool optional = false;
  std::vector<int64_t> dims;
  std::vector<std::string> dim_texts;
  std::vector<const char*> dim_names;
};

struct SessionState {
  std::shared_ptr<const ModelState> model;
  std::unique_ptr<Session> session;  // goes before the model
  std::vector<Port> inputs, outputs;
};

struct Misuse {  // thrown for TENON_BAD_CALL
  std::string text;
};

tenon_status fail(tenon_error** error, tenon_status status, std::vector<Diagnostic> findings) noexcept;

// Every function that can fail: what `body` throws becomes a status and an error.
template <class Body>
tenon_status guarded(tenon_error** error, Body&& body) noexcept {
  if (error != nullptr) *error = nullptr;
  try {
    body();
    return TENON_OK;
  } catch (const Error& e) {
    return fail(error, e.exit_code == exit_bad_input ? TENON_BAD_INPUT : TENON_FAILED, e.diagnostics);
  } catch (const Misuse& e) {
    return fail(error, TENON_BAD_CALL, {{TN_SEVERITY_ERROR, "L101", "", e.text}});
  } catch (const std::bad_alloc&) {
    return fail(error, TENON_NO_MEMORY, {{TN_SEVERITY_ERROR, "L102", "", "out of memory"}});
  } catch (const std::exception& e) {
    return fail(error, TENON_FAILED, {{TN_SEVERITY_ERROR, "L103", "", e.what()}});
  } catch (...) {
    return fail(error, TENON_FAILED, {{TN_SEVERITY_ERROR, "L103", "", "an exception of no known type"}});
  }
}

inline void require(const void* pointer, const char* what) {
  if (pointer == nullptr) throw Misuse{std::string(what) + " is NULL"};
}

// The caller's struct as this library knows it: fields he did not know are zero. What he knows and this
// library does not must be zero, so that nothing he asks for is left out silently.
template <class Struct>
Struct known_part(const Struct* given, uint32_t size, const char* what) {
  if (size < sizeof(uint32_t) * 2)
    throw Misuse{std::string(what) + ".size is " + std::to_string(size) + "; set it to sizeof(" + what + ")"};
  for (size_t i = sizeof(Struct); i < size; ++i) {
    if (reinterpret_cast<const unsigned char*>(given)[i] != 0)
      throw Misuse{std::string(what) + " has fields of a newer libtenon than this one (" +
                   std::string(program_version()) + ") set; install that one, or leave them zero"};
  }
  Struct known{};
  std::memcpy(&known, given, std::min<size_t>(size, sizeof(Struct)));
  return known;
}

// Fills what the caller has room for; his `size` stays.
template <class Struct>
void fill(Struct* out, Struct values, const char* what) {
  require(out, what);
  const uint32_t size = out->size;
  if (size < sizeof(uint32_t) * 2)
    throw Misuse{std::string(what) + "->size is " + std::to_string(size) + "; set it to sizeof(" + what +
                 ")"};
  values.size = size;
  std::memcpy(static_cast<void*>(out), &values, std::min<size_t>(size, sizeof(Struct)));
}

char* as_text(const std::string& text);  // malloc'ed; throws std::bad_alloc
tn_tensor checked_tensor(const tn_tensor& tensor, const std::string& where);

inline tn_any* any_of(const tenon_value* value) {
  return const_cast<tn_any*>(reinterpret_cast<const tn_any*>(value));
}
inline tenon_value* value_of(tn_any* any) { return reinterpret_cast<tenon_value*>(any); }

}  // namespace tenon::lib

struct tenon_error {
  tenon_status status = TENON_FAILED;
  std::string message;
  std::vector<tenon::Diagnostic> findings;
};
struct tenon_host {
  std::shared_ptr<tenon::lib::HostState> state;
};
struct tenon_model {
  std::shared_ptr<tenon::lib::ModelState> state;
};
struct tenon_session {
  std::shared_ptr<tenon::lib::SessionState> state;
};
struct tenon_result {
  std::shared_ptr<tenon::lib::SessionState> session;
  std::vector<tenon::NamedOutput> outputs;
};
