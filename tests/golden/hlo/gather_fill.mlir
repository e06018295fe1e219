module {
func.func public @main(%0: tensor<5x2xf32>, %1: tensor<3xi32>) -> (tensor<3x2xf32>) {
  %2 = "stablehlo.constant"() {value = dense<"0x00000000"> : tensor<i32>} : () -> tensor<i32>
  %3 = "stablehlo.broadcast_in_dim"(%2) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> (tensor<3xi32>)
  %4 = "stablehlo.compare"(%1, %3) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<3xi32>, tensor<3xi32>) -> (tensor<3xi1>)
  %5 = "stablehlo.constant"() {value = dense<"0x05000000"> : tensor<i32>} : () -> tensor<i32>
  %6 = "stablehlo.broadcast_in_dim"(%5) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> (tensor<3xi32>)
  %7 = "stablehlo.add"(%1, %6) : (tensor<3xi32>, tensor<3xi32>) -> (tensor<3xi32>)
  %8 = "stablehlo.select"(%4, %7, %1) : (tensor<3xi1>, tensor<3xi32>, tensor<3xi32>) -> (tensor<3xi32>)
  %9 = "stablehlo.reshape"(%8) : (tensor<3xi32>) -> (tensor<3x1xi32>)
  %10 = "stablehlo.gather"(%0, %9) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 2>} : (tensor<5x2xf32>, tensor<3x1xi32>) -> (tensor<3x2xf32>)
  %11 = "stablehlo.constant"() {value = dense<"0x04000000"> : tensor<1xi32>} : () -> tensor<1xi32>
  %12 = "stablehlo.broadcast_in_dim"(%11) {broadcast_dimensions = array<i64: 1>} : (tensor<1xi32>) -> (tensor<3x1xi32>)
  %13 = "stablehlo.broadcast_in_dim"(%2) {broadcast_dimensions = array<i64>} : (tensor<i32>) -> (tensor<3x1xi32>)
  %14 = "stablehlo.compare"(%9, %13) {comparison_direction = #stablehlo<comparison_direction GE>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<3x1xi32>, tensor<3x1xi32>) -> (tensor<3x1xi1>)
  %15 = "stablehlo.compare"(%9, %12) {comparison_direction = #stablehlo<comparison_direction LE>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<3x1xi32>, tensor<3x1xi32>) -> (tensor<3x1xi1>)
  %16 = "stablehlo.and"(%14, %15) : (tensor<3x1xi1>, tensor<3x1xi1>) -> (tensor<3x1xi1>)
  %17 = "stablehlo.constant"() {value = dense<true> : tensor<i1>} : () -> tensor<i1>
  %21 = "stablehlo.reduce"(%16, %17) ({
^bb0(%18: tensor<i1>, %19: tensor<i1>):
  %20 = "stablehlo.and"(%18, %19) : (tensor<i1>, tensor<i1>) -> (tensor<i1>)
  "stablehlo.return"(%20) : (tensor<i1>) -> ()
}) {dimensions = array<i64: 1>} : (tensor<3x1xi1>, tensor<i1>) -> (tensor<3xi1>)
  %22 = "stablehlo.broadcast_in_dim"(%21) {broadcast_dimensions = array<i64: 0>} : (tensor<3xi1>) -> (tensor<3x2xi1>)
  %23 = "stablehlo.constant"() {value = dense<"0x0000C07F"> : tensor<f32>} : () -> tensor<f32>
  %24 = "stablehlo.broadcast_in_dim"(%23) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> (tensor<3x2xf32>)
  %25 = "stablehlo.select"(%22, %10, %24) : (tensor<3x2xi1>, tensor<3x2xf32>, tensor<3x2xf32>) -> (tensor<3x2xf32>)
  "func.return"(%25) : (tensor<3x2xf32>) -> ()
}
}
