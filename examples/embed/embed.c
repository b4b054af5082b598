/* Tenon from C: open a host, load a model, look at its inputs and outputs, run it once.
 *   embed_c MODEL.onnx [MANIFEST.json]
 * Inputs are a ramp; an open dimension is 1. */
#include <tenon/tenon.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every call that can fail comes with an error that has the whole message. */
static int failed(const char* what, tenon_error* error) {
  fprintf(stderr, "%s: %s\n", what, tenon_error_message(error));
  tenon_error_free(error);
  return 1;
}

static void on_log(void* context, tn_severity severity, const char* text) {
  (void)context;
  fprintf(stderr, "[%d] %s\n", (int)severity, text);
}

static void print_port(const char* what, const tenon_port* port) {
  char type[32];
  tenon_dtype_name(port->dtype, type, sizeof type);
  printf("%s %s: %s[", what, port->name, type);
  for (int32_t axis = 0; axis < port->rank; ++axis) printf("%s%s", axis ? "," : "", port->dim_names[axis]);
  printf("]\n");
}

/* Memory for one input of float32, and the tensor over it. 0: it is of another kind. */
static int ramp(const tenon_port* port, int64_t* dims, tn_tensor* tensor) {
  if (port->kind != TN_KIND_TENSOR || port->dtype != TN_FLOAT32 || port->rank < 0 || port->rank > 8) return 0;
  uint64_t count = 1;
  for (int32_t axis = 0; axis < port->rank; ++axis) {
    dims[axis] = port->dims[axis] < 0 ? 1 : port->dims[axis];
    count *= (uint64_t)dims[axis];
  }
  float* data = malloc(count * sizeof *data);
  if (data == NULL) return 0;
  for (uint64_t i = 0; i < count; ++i) data[i] = (float)i / (float)count;
  tensor->dtype = TN_FLOAT32;
  tensor->rank = port->rank;
  tensor->dims = dims;
  tensor->data = data;
  tensor->bytes = count * sizeof *data;
  return 1;
}

static int run(const tenon_session* session) {
  enum { max_inputs = 8 };
  static int64_t dims[max_inputs][8];
  tenon_input inputs[max_inputs];
  const size_t count = tenon_session_input_count(session);
  size_t ready = 0;
  int code = 0;
  tenon_error* error = NULL;
  tenon_result* result = NULL;
  memset(inputs, 0, sizeof inputs);
  for (; ready < count && ready < max_inputs; ++ready) {
    tenon_port port = {sizeof port, 0, NULL, 0, 0, NULL, NULL, 0, 0};
    if (tenon_session_input(session, ready, &port) != TENON_OK) break;
    print_port("input ", &port);
    inputs[ready].size = sizeof inputs[ready];
    inputs[ready].name = port.name;
    if (!ramp(&port, dims[ready], &inputs[ready].tensor)) break;
  }
  if (ready != count) {
    fprintf(stderr, "this example makes up to %d inputs of float32; input %zu is another\n", max_inputs,
            ready);
    code = 1;
  } else if (tenon_session_run(session, inputs, count, NULL, 0, &result, &error) != TENON_OK) {
    code = failed("run", error);
  }
  for (size_t i = 0; i < tenon_result_count(result); ++i) {
    tenon_port port = {sizeof port, 0, NULL, 0, 0, NULL, NULL, 0, 0};
    tn_tensor tensor;
    tenon_session_output(session, i, &port);
    print_port("output", &port);
    /* The bytes lie in the library's memory until the result is freed. */
    if (tenon_result_tensor(result, i, &tensor) == TENON_OK && tensor.dtype == TN_FLOAT32)
      for (uint64_t k = 0; k < tensor.bytes / sizeof(float) && k < 4; ++k)
        printf("  %g\n", (double)((const float*)tensor.data)[k]);
  }
  tenon_result_free(result);
  for (size_t i = 0; i < ready; ++i) free(inputs[i].tensor.data);
  return code;
}

int main(int argc, char** argv) {
  tenon_host_options options;
  tenon_host* host = NULL;
  tenon_model* model = NULL;
  tenon_session* session = NULL;
  tenon_error* error = NULL;
  char* text = NULL;
  int code = 0;
  if (argc < 2) {
    fprintf(stderr, "use: embed_c MODEL.onnx [MANIFEST.json]\n");
    return 2;
  }
  printf("libtenon %s\n", tenon_version());
  tenon_set_log(on_log, NULL, TN_SEVERITY_WARNING);
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.manifest_path = argc > 2 ? argv[2] : NULL;
  if (tenon_host_open(&options, &host, &error) != TENON_OK)
    code = failed("open", error);
  else if (tenon_model_load(host, argv[1], &model, &error) != TENON_OK)
    code = failed("load", error);
  else if (tenon_model_optimize(model, &error) != TENON_OK)
    code = failed("optimize", error);
  else if (tenon_session_open(model, &session, &error) != TENON_OK)
    code = failed("session", error);
  else
    code = run(session);
  if (code == 0 && tenon_session_summary(session, TENON_TEXT, &text, &error) == TENON_OK) printf("%s", text);
  /* In any order: what one of them needs of the others stays. */
  tenon_text_free(text);
  tenon_host_close(host);
  tenon_model_close(model);
  tenon_session_close(session);
  return code;
}
