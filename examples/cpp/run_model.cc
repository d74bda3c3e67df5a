// Runs a model once: raw floats of its only input in, the first output's floats out, one a line.
//
//   run_model model.ort input.bin

#include <onnxruntime_cxx_api.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

std::vector<float> read_floats(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  if (!file || bytes.size() % sizeof(float) != 0) {
    throw std::runtime_error(std::string(path) + " cannot be read, or holds no floats");
  }
  std::vector<float> floats(bytes.size() / sizeof(float));
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(floats.data()));
  return floats;
}

// A dimension that the model leaves open, of which there can be one, is as large as the data.
std::vector<int64_t> fitting(std::vector<int64_t> shape, size_t count) {
  size_t known = 1;
  for (int64_t size : shape) known *= size > 0 ? static_cast<size_t>(size) : 1;
  for (int64_t& size : shape) {
    if (size < 1) size = static_cast<int64_t>(count / known);
  }
  return shape;
}

void run(const char* model, const char* input) {
  Ort::Env env(ORT_LOGGING_LEVEL_WARNING, "run_model");
  Ort::SessionOptions options;
  options.SetIntraOpNumThreads(1);
  Ort::Session session(env, model, options);

  std::vector<float> data = read_floats(input);
  Ort::TypeInfo type = session.GetInputTypeInfo(0);
  std::vector<int64_t> shape = fitting(type.GetTensorTypeAndShapeInfo().GetShape(), data.size());
  Ort::MemoryInfo memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  Ort::Value tensor = Ort::Value::CreateTensor<float>(memory, data.data(), data.size(), shape.data(), shape.size());

  Ort::AllocatorWithDefaultOptions allocator;
  Ort::AllocatedStringPtr in = session.GetInputNameAllocated(0, allocator);
  Ort::AllocatedStringPtr out = session.GetOutputNameAllocated(0, allocator);
  const char* in_names[] = {in.get()};
  const char* out_names[] = {out.get()};
  std::vector<Ort::Value> results = session.Run(Ort::RunOptions{}, in_names, &tensor, 1, out_names, 1);

  const float* values = results[0].GetTensorData<float>();
  const size_t count = results[0].GetTensorTypeAndShapeInfo().GetElementCount();
  for (size_t index = 0; index < count; ++index) std::printf("%.9g\n", values[index]);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s model input.bin\n", argv[0]);
    return EXIT_FAILURE;
  }
  try {
    run(argv[1], argv[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[1], error.what());
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
