module {
func.func public @main(%0: tensor<4xf32>, %1: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>) {
  %11:2 = "stablehlo.sort"(%0, %1) ({
^bb0(%2: tensor<f32>, %3: tensor<f32>, %4: tensor<i32>, %5: tensor<i32>):
  %6 = "stablehlo.compare"(%2, %3) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<f32>, tensor<f32>) -> (tensor<i1>)
  %7 = "stablehlo.compare"(%2, %2) {comparison_direction = #stablehlo<comparison_direction EQ>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<f32>, tensor<f32>) -> (tensor<i1>)
  %8 = "stablehlo.compare"(%3, %3) {comparison_direction = #stablehlo<comparison_direction NE>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<f32>, tensor<f32>) -> (tensor<i1>)
  %9 = "stablehlo.and"(%7, %8) : (tensor<i1>, tensor<i1>) -> (tensor<i1>)
  %10 = "stablehlo.or"(%6, %9) : (tensor<i1>, tensor<i1>) -> (tensor<i1>)
  "stablehlo.return"(%10) : (tensor<i1>) -> ()
}) {dimension = 0 : i64, is_stable = true} : (tensor<4xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>)
  "func.return"(%11#0, %11#1) : (tensor<4xf32>, tensor<4xi32>) -> ()
}
}
