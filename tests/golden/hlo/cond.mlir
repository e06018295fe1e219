module {
func.func public @main(%0: tensor<i32>, %1: tensor<2xf32>) -> (tensor<2xf32>) {
  %2 = "stablehlo.constant"() {value = dense<"0x00000000"> : tensor<i32>} : () -> tensor<i32>
  %3 = "stablehlo.constant"() {value = dense<"0x01000000"> : tensor<i32>} : () -> tensor<i32>
  %4 = "stablehlo.maximum"(%0, %2) : (tensor<i32>, tensor<i32>) -> (tensor<i32>)
  %5 = "stablehlo.minimum"(%4, %3) : (tensor<i32>, tensor<i32>) -> (tensor<i32>)
  %6 = "stablehlo.minimum"(%5, %3) : (tensor<i32>, tensor<i32>) -> (tensor<i32>)
  %7 = "stablehlo.maximum"(%6, %2) : (tensor<i32>, tensor<i32>) -> (tensor<i32>)
  %10 = "stablehlo.case"(%7) ({
  %8 = "stablehlo.sine"(%1) : (tensor<2xf32>) -> (tensor<2xf32>)
  "stablehlo.return"(%8) : (tensor<2xf32>) -> ()
}, {
  %9 = "stablehlo.cosine"(%1) : (tensor<2xf32>) -> (tensor<2xf32>)
  "stablehlo.return"(%9) : (tensor<2xf32>) -> ()
}) : (tensor<i32>) -> (tensor<2xf32>)
  "func.return"(%10) : (tensor<2xf32>) -> ()
}
}
