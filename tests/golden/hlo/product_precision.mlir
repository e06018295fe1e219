module @within {
func.func public @main(%0: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<1x1x2x2xf32>, tensor<2x2xf32>) {
  %1 = "stablehlo.dot_general"(%0, %0) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]} : (tensor<2x2xf32>, tensor<2x2xf32>) -> (tensor<2x2xf32>)
  %2 = "stablehlo.reshape"(%0) : (tensor<2x2xf32>) -> (tensor<1x1x2x2xf32>)
  %3 = "stablehlo.reshape"(%0) : (tensor<2x2xf32>) -> (tensor<1x1x2x2xf32>)
  %4 = "stablehlo.convolution"(%2, %3) {batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]>, feature_group_count = 1 : i64, lhs_dilation = array<i64: 1, 1>, padding = dense<[[0, 1], [0, 1]]> : tensor<2x2xi64>, precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>], rhs_dilation = array<i64: 1, 1>, window_strides = array<i64: 1, 1>} : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> (tensor<1x1x2x2xf32>)
  %5 = "stablehlo.dot_general"(%0, %0) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision HIGH>]} : (tensor<2x2xf32>, tensor<2x2xf32>) -> (tensor<2x2xf32>)
  "func.return"(%1, %4, %5) : (tensor<2x2xf32>, tensor<1x1x2x2xf32>, tensor<2x2xf32>) -> ()
}
}
