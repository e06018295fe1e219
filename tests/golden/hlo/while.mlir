module {
func.func public @main(%0: tensor<2xf32>) -> (tensor<2xf32>) {
  %16 = "stablehlo.while"(%0) ({
^bb0(%1: tensor<2xf32>):
  %2 = "stablehlo.constant"() {value = dense<"0x00000000"> : tensor<f32>} : () -> tensor<f32>
  %6 = "stablehlo.reduce"(%1, %2) ({
^bb0(%3: tensor<f32>, %4: tensor<f32>):
  %5 = "stablehlo.add"(%3, %4) : (tensor<f32>, tensor<f32>) -> (tensor<f32>)
  "stablehlo.return"(%5) : (tensor<f32>) -> ()
}) {dimensions = array<i64: 0>} : (tensor<2xf32>, tensor<f32>) -> (tensor<f32>)
  %7 = "stablehlo.constant"() {value = dense<"0x00002041"> : tensor<f32>} : () -> tensor<f32>
  %8 = "stablehlo.compare"(%6, %7) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<f32>, tensor<f32>) -> (tensor<i1>)
  "stablehlo.return"(%8) : (tensor<i1>) -> ()
}, {
^bb0(%9: tensor<2xf32>):
  %10 = "stablehlo.constant"() {value = dense<"0x00000040"> : tensor<f32>} : () -> tensor<f32>
  %11 = "stablehlo.broadcast_in_dim"(%10) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<2xf32>)
  %12 = "stablehlo.multiply"(%9, %11) : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>)
  %13 = "stablehlo.constant"() {value = dense<"0x0000803F"> : tensor<f32>} : () -> tensor<f32>
  %14 = "stablehlo.broadcast_in_dim"(%13) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<2xf32>)
  %15 = "stablehlo.add"(%12, %14) : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>)
  "stablehlo.return"(%15) : (tensor<2xf32>) -> ()
}) : (tensor<2xf32>) -> (tensor<2xf32>)
  "func.return"(%16) : (tensor<2xf32>) -> ()
}
}
