module {
func.func public @main(%0: tensor<3x2xf32>, %1: tensor<4x3xf32>) -> (tensor<3x2xf32>) {
  %2 = "stablehlo.dot_general"(%1, %0) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<4x3xf32>, tensor<3x2xf32>) -> (tensor<4x2xf32>)
  %3 = "stablehlo.tanh"(%2) : (tensor<4x2xf32>) -> (tensor<4x2xf32>)
  %4 = "stablehlo.multiply"(%3, %3) : (tensor<4x2xf32>, tensor<4x2xf32>) -> (tensor<4x2xf32>)
  %5 = "stablehlo.constant"() {value = dense<"0x0000803F"> : tensor<f32>} : () -> tensor<f32>
  %6 = "stablehlo.broadcast_in_dim"(%5) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<4x2xf32>)
  %7 = "stablehlo.subtract"(%6, %4) : (tensor<4x2xf32>, tensor<4x2xf32>) -> (tensor<4x2xf32>)
  %8 = "stablehlo.constant"() {value = dense<"0x00000000"> : tensor<f32>} : () -> tensor<f32>
  %12 = "stablehlo.reduce"(%3, %8) ({
^bb0(%9: tensor<f32>, %10: tensor<f32>):
  %11 = "stablehlo.add"(%9, %10) : (tensor<f32>, tensor<f32>) -> (tensor<f32>)
  "stablehlo.return"(%11) : (tensor<f32>) -> ()
}) {dimensions = array<i64: 0, 1>} : (tensor<4x2xf32>, tensor<f32>) -> (tensor<f32>)
  %13 = "stablehlo.broadcast_in_dim"(%5) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<4x2xf32>)
  %14 = "stablehlo.multiply"(%13, %7) : (tensor<4x2xf32>, tensor<4x2xf32>) -> (tensor<4x2xf32>)
  %15 = "stablehlo.dot_general"(%14, %1) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<4x2xf32>, tensor<4x3xf32>) -> (tensor<2x3xf32>)
  %16 = "stablehlo.transpose"(%15) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> (tensor<3x2xf32>)
  "func.return"(%16) : (tensor<3x2xf32>) -> ()
}
}
