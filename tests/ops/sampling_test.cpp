// Inference, upgrades and refusals of transforms, losses and sampling.
#include "inference_table.hpp"

using namespace tenon::test;

TEST_CASE("transforms and windows") {
  check({
      {"x: float32[B,N,1]", "DFT(x)", "float32[B,N,2]"},
      {"x: float32[B,N,1]", "DFT(x) {onesided = 1}", "float32[B,floordiv(N, 2) + 1,2]"},
      {"x: float32[B,5,2]", "DFT(x) {onesided = 1, inverse = 1}", "float32[B,8,1]"},
      {"x: float32[B,5,2]; n: int64[] = [9]", "DFT(x, n) {inverse = 1}", "float32[B,9,2]"},
      {"x: float32[B,5,N,1]; a: int64[] = [1]", "DFT(x, _, a) {onesided = 1}", "float32[B,3,N,2]"},
      {"x: float32[B,5,N,1]", "DFT(x) {axis = 2} version 17", "float32[B,5,N,2]"},
      {"x: float32[B,100,1]; s: int64[] = [10]; w: float32[20]", "STFT(x, s, w)", "float32[B,9,11,2]"},
      {"x: float32[B,100]; s: int64[] = [10]; w: float32[20]", "STFT(x, s, w)", "float32[B,9,11,2]"},
      {"x: float32[B,100,2]; s: int64[] = [10]; n: int64[] = [30]", "STFT(x, s, _, n) {onesided = 0}",
       "float32[B,8,30,2]"},
      {"n: int64[] = [7]", "HannWindow(n)", "float32[7]"},
      {"n: int32[] = [7]", "BlackmanWindow(n) {output_datatype = 11}", "float64[7]"},
      {"m: int64[] = [8]; n: int64[] = [16]; r: int64[]; a: float32[]; b: float32[]",
       "MelWeightMatrix(m, n, r, a, b)", "float32[9,8]"},
  });
  check_refused({
      {"x: float32[B,5,3]", "DFT(x)", "a last dimension of 1 (real) or 2 (complex)"},
      {"x: float32[B,5,2]", "DFT(x) {onesided = 1}", "operand input is complex"},
      {"x: float32[B,5,1]", "DFT(x) {onesided = 1, inverse = 1}", "operand input is real"},
      {"x: float32[B,5,1]; a: int64[] = [2]", "DFT(x, _, a)", "operand axis names the last axis"},
      {"x: float32[B,5,1]; n: int64[] = [0]", "DFT(x, n)", "operand dft_length is 0"},
      {"x: float32[B,0,1]", "DFT(x)", "too short"},
      {"x: float32[B,10,1]; s: int64[] = [1]; w: float32[20]", "STFT(x, s, w)", "a frame has 20 samples"},
      {"x: float32[B,10,1]; s: int64[] = [0]; w: float32[5]", "STFT(x, s, w)", "operand frame_step is 0"},
      {"x: float32[B,10,1]; s: int64[] = [1]; w: float32[5]; n: int64[] = [6]", "STFT(x, s, w, n)",
       "operand frame_length is 6"},
      {"n: int64[] = [-7]", "HannWindow(n)", "operand size is -7"},
      {"n: int64[] = [7]", "HannWindow(n) {output_datatype = 8}", "attribute 'output_datatype' is string"},
  });
}

TEST_CASE("losses") {
  check({
      {"x: float32[N,C,4]; t: int64[N,4]", "NegativeLogLikelihoodLoss(x, t)", "float32[]"},
      {"x: float32[N,C,4]; t: int64[N,4]; w: float32[C]",
       "NegativeLogLikelihoodLoss(x, t, w) {reduction = \"none\"}", "float32[N,4]"},
      {"x: float16[N,7]; t: int32[N]", "SoftmaxCrossEntropyLoss(x, t)", "float16[]; float16[N,7]", 2},
  });
  check_refused({
      {"x: float32[2,3,4]; t: int64[2,5]", "NegativeLogLikelihoodLoss(x, t)",
       "operand target has shape [2,5]"},
      {"x: float32[2,3]; t: int64[2]; w: float32[2]", "SoftmaxCrossEntropyLoss(x, t, w)",
       "operand weights has shape [2]"},
      {"x: float32[2,3]; t: int64[2]", "SoftmaxCrossEntropyLoss(x, t) {reduction = \"max\"}",
       "attribute 'reduction' is 'max'"},
  });
}

TEST_CASE("grids, regions and blocks") {
  check({
      {"x: float32[N,C,4,5]; g: float32[N,H,W,2]", "GridSample(x, g)", "float32[N,C,H,W]"},
      {"x: float32[N,C,4,5]; g: float32[N,H,W,2]", "GridSample(x, g) {mode = \"bicubic\"} version 16",
       "float32[N,C,H,W]"},
      {"t: float32[N,2,3]; s: int64[4] = [2,3,4,5]", "AffineGrid(t, s)", "float32[N,4,5,2]"},
      {"t: float32[2,3,4]; s: int64[5] = [2,3,4,5,6]", "AffineGrid(t, s)", "float32[2,4,5,6,3]"},
      {"x: float32[N,C,H,W]; r: float32[R,4]; b: int64[R]", "RoiAlign(x, r, b) {output_height = 3}",
       "float32[R,C,3,1]"},
      {"x: float32[N,C,H,W]; r: float32[R,5]", "MaxRoiPool(x, r) {pooled_shape = [2,3]}", "float32[R,C,2,3]"},
      {"x: float32[N,12,6]; i: int64[2] = [3,4]; b: int64[2] = [2,2]", "Col2Im(x, i, b)", "float32[N,3,3,4]"},
      {"x: float32[N,4,5,5]; w: float32[6,2,2,2]; o: float32[N,8,4,4]", "DeformConv(x, w, o) {group = 2}",
       "float32[N,6,4,4]"},
      {"x: float32[N,C,3,3]; i: int64[N,C,3,3]", "MaxUnpool(x, i) {kernel_shape = [2,2], strides = [2,2]}",
       "float32[N,C,6,6]"},
      {"x: float32[2,N,7]; s: int64[2] = [4,5]", "CenterCropPad(x, s) {axes = [0,-1]}", "float32[4,N,5]"},
      {"x: float32[N,3,3]", "Det(x)", "float32[N]"},
      {"x: float32[N,C]", "Multinomial(x) {sample_size = 4}", "int32[N,4]"},
      {"x: float32[T,N,4]; l: int64[N]", "ReverseSequence(x, l)", "float32[T,N,4]"},
      {"c: float32[N,H,8,4]; u: float32[N,H,S,4]", "TensorScatter(c, u)", "float32[N,H,8,4]"},
      {"x: float32[N]", "BitCast(x) {to = 6}", "int32[N]"},
  });
  check_refused({
      {"x: float32[1,1,4,5]; g: float32[1,2,2,3]", "GridSample(x, g)", "operand grid has shape [1,2,2,3]"},
      {"x: float32[1,1,4,5]; g: float32[1,2,2,2]", "GridSample(x, g) {mode = \"bicubic\"}",
       "attribute 'mode' is 'bicubic'"},
      {"x: float32[1,1,4,5]; g: float32[1,2,2,2]", "GridSample(x, g) {padding_mode = \"wrap\"}",
       "attribute 'padding_mode'"},
      {"x: string[1,1,4,5]; g: float32[1,2,2,2]", "GridSample(x, g)", "operand X holds text"},
      {"t: float32[2,2,3]; s: int64[4] = [3,3,4,5]", "AffineGrid(t, s)", "operand size asks for 3 grids"},
      {"t: float32[2,2,3]; s: int64[3] = [3,3,4]", "AffineGrid(t, s)", "operand size has 3 numbers"},
      {"x: float32[1,1,4,4]; r: float32[2,5]; b: int64[2]", "RoiAlign(x, r, b)",
       "operand rois has shape [2,5]"},
      {"x: float32[1,1,4,4]; r: float32[2,4]; b: int64[3]", "RoiAlign(x, r, b)",
       "operand batch_indices has shape [3]"},
      {"x: float32[1,1,4,4]; r: float32[2,4]; b: int64[2]", "RoiAlign(x, r, b) {sampling_ratio = -1}",
       "'sampling_ratio' is -1"},
      {"x: float32[1,11,6]; i: int64[2] = [3,4]; b: int64[2] = [2,2]", "Col2Im(x, i, b)",
       "operand input has 11 rows"},
      {"x: float32[1,12,7]; i: int64[2] = [3,4]; b: int64[2] = [2,2]", "Col2Im(x, i, b)", "give 6 blocks"},
      {"x: float32[1,12,7]; i: int64[2] = [3,4]; b: int64[2] = [0,2]", "Col2Im(x, i, b)",
       "operand block_shape is [0,2]"},
      {"x: string[1,12,6]; i: int64[2] = [3,4]; b: int64[2] = [2,2]", "Col2Im(x, i, b)",
       "operand input holds text"},
      {"x: float32[1,4,5,5]; w: float32[6,4,2,2]; o: float32[1,9,4,4]", "DeformConv(x, w, o)",
       "operand offset has shape"},
      {"x: float32[1,1,2,2]; i: int64[1,1,2,2]; s: int64[4] = [1,1,3,3]",
       "MaxUnpool(x, i, s) {kernel_shape = [2,2], strides = [2,2]}", "operand output_shape is [1,1,3,3]"},
      {"x: float32[2,7]; s: int64[2] = [4,-5]", "CenterCropPad(x, s)", "operand shape is [4,-5]"},
      {"x: float32[2,7]; s: int64[2] = [4,5]", "CenterCropPad(x, s) {axes = [0,-2]}", "names axis 0 twice"},
      {"x: float32[2,3]", "Det(x)", "square matrices"},
      {"x: float32[2,3]", "Multinomial(x) {dtype = 1}", "attribute 'dtype' is float32"},
      {"x: float32[3,2]; l: int64[3]", "ReverseSequence(x, l)", "operand sequence_lens has shape [3]"},
      {"x: float32[3,2]; l: int64[2]", "ReverseSequence(x, l) {time_axis = 1}",
       "attributes 'time_axis' and 'batch_axis'"},
      {"c: float32[1,4,4]; u: float32[1,5,4]", "TensorScatter(c, u)", "operand update has shape [1,5,4]"},
      {"c: float32[1,4,4]; u: float32[1,2,4]", "TensorScatter(c, u) {axis = 0}",
       "attribute 'axis' names the batch"},
      {"x: float32[2]", "BitCast(x) {to = 7}", "attribute 'to' is int64 of 64 bits"},
  });
}

TEST_CASE("older forms of transforms and sampling") {
  CHECK(operators_of("x: float32[2,3,4,5]", "LpPool(x) {kernel_shape = [2,2], p = 3.0} version 1") ==
        "LpPool");
  CHECK(operators_of("x: float32[2,3,4,5]", "LpPool(x) {kernel_shape = [2,2], p = 1.5} version 1") ==
        "Abs Pow AveragePool Mul Pow");
  CHECK(operators_of("x: float32[2,3,4,5]", "GlobalLpPool(x) {p = 1.5} version 1") ==
        "Abs Pow ReduceSum Pow");
  CHECK(types_of("x: float32[2,3,4,5]", "GlobalLpPool(x) {p = 1.5} version 1") == "float32[2,3,1,1]");
  CHECK_THAT(types_of("x: float32[2,3,4,5]", "LpPool(x) {kernel_shape = [2,2], p = -1.5} version 1"),
             Catch::Contains("attribute 'p' is -1.5"));
  const char* given = "x: float32[1,1,4,6]; s: float32[4] = [1.0,1.0,2.0,0.5]";
  const std::string resize = "Resize(x, _, s) {coordinate_transformation_mode = \"tf_half_pixel_for_nn\", ";
  CHECK(operators_of(given, resize + "mode = \"nearest\", nearest_mode = \"floor\"} version 11") == "Resize");
  for (const char* other :
       {"mode = \"nearest\", nearest_mode = \"ceil\"", "mode = \"linear\"", "mode = \"cubic\""}) {
    CHECK(operators_of(given, resize + other + "} version 11") == "Resize Slice");
    CHECK(types_of(given, resize + other + "} version 11") == "float32[1,1,8,3]");
  }
  CHECK_THAT(types_of("x: float32[1,1,4,6]; s: float32[4]", resize + "mode = \"linear\"} version 11"),
             Catch::Contains("only where scales or sizes are constant"));
}
