module {
func.func public @main(%0: tensor<4x5xf32>) -> (tensor<4x5xf32>) {
  %1 = "stablehlo.constant"() {value = dense<"0x000080FF"> : tensor<f32>} : () -> tensor<f32>
  %5 = "stablehlo.reduce"(%0, %1) ({
^bb0(%2: tensor<f32>, %3: tensor<f32>):
  %4 = "stablehlo.maximum"(%2, %3) : (tensor<f32>, tensor<f32>) -> (tensor<f32>)
  "stablehlo.return"(%4) : (tensor<f32>) -> ()
}) {dimensions = array<i64: 1>} : (tensor<4x5xf32>, tensor<f32>) -> (tensor<4xf32>)
  %6 = "stablehlo.broadcast_in_dim"(%1) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<4xf32>)
  %7 = "stablehlo.maximum"(%6, %5) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>)
  %8 = "stablehlo.reshape"(%7) : (tensor<4xf32>) -> (tensor<4x1xf32>)
  %9 = "stablehlo.broadcast_in_dim"(%8) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<4x1xf32>) -> (tensor<4x5xf32>)
  %10 = "stablehlo.subtract"(%0, %9) : (tensor<4x5xf32>, tensor<4x5xf32>) -> (tensor<4x5xf32>)
  %11 = "stablehlo.exponential"(%10) : (tensor<4x5xf32>) -> (tensor<4x5xf32>)
  %12 = "stablehlo.constant"() {value = dense<"0x00000000"> : tensor<f32>} : () -> tensor<f32>
  %16 = "stablehlo.reduce"(%11, %12) ({
^bb0(%13: tensor<f32>, %14: tensor<f32>):
  %15 = "stablehlo.add"(%13, %14) : (tensor<f32>, tensor<f32>) -> (tensor<f32>)
  "stablehlo.return"(%15) : (tensor<f32>) -> ()
}) {dimensions = array<i64: 1>} : (tensor<4x5xf32>, tensor<f32>) -> (tensor<4xf32>)
  %17 = "stablehlo.reshape"(%16) : (tensor<4xf32>) -> (tensor<4x1xf32>)
  %18 = "stablehlo.constant"() {value = dense<"0x0000803F"> : tensor<f32>} : () -> tensor<f32>
  %19 = "stablehlo.broadcast_in_dim"(%18) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<4x1xf32>)
  %20 = "stablehlo.divide"(%19, %17) : (tensor<4x1xf32>, tensor<4x1xf32>) -> (tensor<4x1xf32>)
  %21 = "stablehlo.broadcast_in_dim"(%20) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<4x1xf32>) -> (tensor<4x5xf32>)
  %22 = "stablehlo.multiply"(%11, %21) : (tensor<4x5xf32>, tensor<4x5xf32>) -> (tensor<4x5xf32>)
  "func.return"(%22) : (tensor<4x5xf32>) -> ()
}
}
