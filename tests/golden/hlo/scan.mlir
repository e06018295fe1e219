module {
func.func public @main(%0: tensor<2xf32>, %1: tensor<3x2xf32>) -> (tensor<2xf32>, tensor<3x2xf32>) {
  %2 = "stablehlo.constant"() {value = dense<"0x00000000"> : tensor<f32>} : () -> tensor<f32>
  %3 = "stablehlo.broadcast_in_dim"(%2) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<3x2xf32>)
  %4 = "stablehlo.constant"() {value = dense<"0x00000000"> : tensor<i32>} : () -> tensor<i32>
  %23:4 = "stablehlo.while"(%4, %1, %0, %3) ({
^bb0(%5: tensor<i32>, %6: tensor<3x2xf32>, %7: tensor<2xf32>, %8: tensor<3x2xf32>):
  %9 = "stablehlo.constant"() {value = dense<"0x03000000"> : tensor<i32>} : () -> tensor<i32>
  %10 = "stablehlo.compare"(%5, %9) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<i32>, tensor<i32>) -> (tensor<i1>)
  "stablehlo.return"(%10) : (tensor<i1>) -> ()
}, {
^bb0(%11: tensor<i32>, %12: tensor<3x2xf32>, %13: tensor<2xf32>, %14: tensor<3x2xf32>):
  %15 = "stablehlo.constant"() {value = dense<"0x01000000"> : tensor<i32>} : () -> tensor<i32>
  %16 = "stablehlo.add"(%11, %15) : (tensor<i32>, tensor<i32>) -> (tensor<i32>)
  %17 = "stablehlo.dynamic_slice"(%12, %11, %4) {slice_sizes = array<i64: 1, 2>} : (tensor<3x2xf32>, tensor<i32>, tensor<i32>) -> (tensor<1x2xf32>)
  %18 = "stablehlo.reshape"(%17) : (tensor<1x2xf32>) -> (tensor<2xf32>)
  %19 = "stablehlo.add"(%13, %18) : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>)
  %20 = "stablehlo.multiply"(%13, %18) : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>)
  %21 = "stablehlo.reshape"(%20) : (tensor<2xf32>) -> (tensor<1x2xf32>)
  %22 = "stablehlo.dynamic_update_slice"(%14, %21, %11, %4) : (tensor<3x2xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> (tensor<3x2xf32>)
  "stablehlo.return"(%16, %12, %19, %22) : (tensor<i32>, tensor<3x2xf32>, tensor<2xf32>, tensor<3x2xf32>) -> ()
}) : (tensor<i32>, tensor<3x2xf32>, tensor<2xf32>, tensor<3x2xf32>) -> (tensor<i32>, tensor<3x2xf32>, tensor<2xf32>, tensor<3x2xf32>)
  "func.return"(%23#2, %23#3) : (tensor<2xf32>, tensor<3x2xf32>) -> ()
}
}
