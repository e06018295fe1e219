module {
func.func public @main(%0: tensor<5xf32>, %1: tensor<3xi32>) -> (tensor<5xf32>) {
  %2 = "stablehlo.constant"() {value = dense<"0x0000803F"> : tensor<f32>} : () -> tensor<f32>
  %3 = "stablehlo.broadcast_in_dim"(%2) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<3xf32>)
  %4 = "stablehlo.constant"() {value = dense<"0x00000000"> : tensor<i32>} : () -> tensor<i32>
  %5 = "stablehlo.broadcast_in_dim"(%4) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> (tensor<3xi32>)
  %6 = "stablehlo.compare"(%1, %5) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<3xi32>, tensor<3xi32>) -> (tensor<3xi1>)
  %7 = "stablehlo.constant"() {value = dense<"0x05000000"> : tensor<i32>} : () -> tensor<i32>
  %8 = "stablehlo.broadcast_in_dim"(%7) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> (tensor<3xi32>)
  %9 = "stablehlo.add"(%1, %8) : (tensor<3xi32>, tensor<3xi32>) -> (tensor<3xi32>)
  %10 = "stablehlo.select"(%6, %9, %1) : (tensor<3xi1>, tensor<3xi32>, tensor<3xi32>) -> (tensor<3xi32>)
  %11 = "stablehlo.reshape"(%10) : (tensor<3xi32>) -> (tensor<3x1xi32>)
  %15 = "stablehlo.scatter"(%0, %11, %3) ({
^bb0(%12: tensor<f32>, %13: tensor<f32>):
  %14 = "stablehlo.add"(%12, %13) : (tensor<f32>, tensor<f32>) -> (tensor<f32>)
  "stablehlo.return"(%14) : (tensor<f32>) -> ()
}) {indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false} : (tensor<5xf32>, tensor<3x1xi32>, tensor<3xf32>) -> (tensor<5xf32>)
  "func.return"(%15) : (tensor<5xf32>) -> ()
}
}
