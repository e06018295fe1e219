module {
func.func public @main(%0: tensor<2x3xf32>, %1: tensor<2x3xf32>) -> (tensor<2x3xf32>) {
  %2 = "stablehlo.compare"(%0, %1) {comparison_direction = #stablehlo<comparison_direction GT>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<2x3xi1>)
  %3 = "stablehlo.sine"(%0) : (tensor<2x3xf32>) -> (tensor<2x3xf32>)
  %4 = "stablehlo.constant"() {value = dense<"0x00000040"> : tensor<f32>} : () -> tensor<f32>
  %5 = "stablehlo.broadcast_in_dim"(%4) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<2x3xf32>)
  %6 = "stablehlo.multiply"(%3, %5) : (tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>)
  %7 = "stablehlo.add"(%6, %1) : (tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>)
  %8 = "stablehlo.exponential"(%1) : (tensor<2x3xf32>) -> (tensor<2x3xf32>)
  %9 = "stablehlo.negate"(%8) : (tensor<2x3xf32>) -> (tensor<2x3xf32>)
  %10 = "stablehlo.select"(%2, %7, %9) : (tensor<2x3xi1>, tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>)
  "func.return"(%10) : (tensor<2x3xf32>) -> ()
}
}
