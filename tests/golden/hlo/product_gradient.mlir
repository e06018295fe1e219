module {
func.func public @main(%0: tensor<3x2xf32>, %1: tensor<4x3xf32>) -> (tensor<3x2xf32>) {
  %2 = "stablehlo.dot_general"(%1, %0) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<4x3xf32>, tensor<3x2xf32>) -> (tensor<4x2xf32>)
  %3 = "stablehlo.tanh"(%2) : (tensor<4x2xf32>) -> (tensor<4x2xf32>)
  %4 = "stablehlo.constant"() {value = dense<"0x0000803F"> : tensor<f32>} : () -> tensor<f32>
  %5 = "stablehlo.broadcast_in_dim"(%4) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<4x2xf32>)
  %6 = "stablehlo.subtract"(%5, %3) : (tensor<4x2xf32>, tensor<4x2xf32>) -> (tensor<4x2xf32>)
  %7 = "stablehlo.broadcast_in_dim"(%4) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<4x2xf32>)
  %8 = "stablehlo.add"(%7, %3) : (tensor<4x2xf32>, tensor<4x2xf32>) -> (tensor<4x2xf32>)
  %9 = "stablehlo.multiply"(%6, %8) : (tensor<4x2xf32>, tensor<4x2xf32>) -> (tensor<4x2xf32>)
  %10 = "stablehlo.constant"() {value = dense<"0x00000000"> : tensor<f32>} : () -> tensor<f32>
  %14 = "stablehlo.reduce"(%3, %10) ({
^bb0(%11: tensor<f32>, %12: tensor<f32>):
  %13 = "stablehlo.add"(%11, %12) : (tensor<f32>, tensor<f32>) -> (tensor<f32>)
  "stablehlo.return"(%13) : (tensor<f32>) -> ()
}) {dimensions = array<i64: 0, 1>} : (tensor<4x2xf32>, tensor<f32>) -> (tensor<f32>)
  %15 = "stablehlo.broadcast_in_dim"(%4) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<4x2xf32>)
  %16 = "stablehlo.multiply"(%15, %9) : (tensor<4x2xf32>, tensor<4x2xf32>) -> (tensor<4x2xf32>)
  %17 = "stablehlo.dot_general"(%16, %1) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<4x2xf32>, tensor<4x3xf32>) -> (tensor<2x3xf32>)
  %18 = "stablehlo.transpose"(%17) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> (tensor<3x2xf32>)
  "func.return"(%18) : (tensor<3x2xf32>) -> ()
}
}
