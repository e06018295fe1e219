"""Differences that are accepted, each with its reason: JAX's answer is undefined or wrong there."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from comparison.cases import Case

Test = Callable[[Case, str, str], bool]


def plain(kind: str) -> str:
    """A kind of difference without its phase."""
    return kind.rsplit(": ", 1)[-1]


def named(names: str, *kinds: str) -> Test:
    """These functions (below a name that ends in a dot, all); `kinds`: beginnings of the kinds."""
    chosen = tuple(names.split())

    def test(case: Case, kind: str, text: str) -> bool:
        found = any(case.name == n or n.endswith(".") and case.name.startswith(n) for n in chosen)
        return found and (not kinds or plain(kind).startswith(kinds))

    return test


def more_capable(case: Case, kind: str, text: str) -> bool:
    return plain(kind) == "does not raise NotImplementedError"


def subnormal(case: Case, kind: str, text: str) -> bool:
    numbers = r"\b\d(\.\d+)?e-(39|4\d)\b"
    return bool(re.search(numbers, str(case))) and plain(kind) in (
        "value", "NaN", "infinity", "sign of zero")


def complex_infinity(case: Case, kind: str, text: str) -> bool:
    """Complex arguments with infinite or undefined parts, of elementary functions."""
    return (bool(re.search(r"complex\([^()]*(inf|nan)", str(case)))
            and case.name.startswith(("numpy.", "lax.", "nn.", "scipy.special."))
            and plain(kind) in ("value", "NaN", "infinity", "sign of zero"))


def half_transform(case: Case, kind: str, text: str) -> bool:
    return "RFFT input must be float32 or float64" in text


def both_without_derivative(case: Case, kind: str, text: str) -> bool:
    return plain(kind) == "raises NotImplementedError, not ValueError" and "derivative of" in text


def sixteen_bits(case: Case, kind: str, text: str) -> bool:
    return plain(kind) == "raises NotImplementedError" and ("jit" in kind or "types" in kind)


def abstract_only(case: Case, kind: str, text: str) -> bool:
    """What abstract evaluation does not tell of values: classes, and the refusals of lowering."""
    if "types" not in case.phases:
        return False
    found = plain(kind)
    of_complex = "complex numbers have no order" in text  # refused when JAX lowers it
    size = case.name == "lax.reshape" and found == "raises TypeError"
    return found.startswith("class ") or of_complex or size


def more_dtypes(case: Case, kind: str, text: str) -> bool:
    return ("is not supported" in text and "dtype=" in text or "see docstring for supported" in text
            or case.name == "lax.conj" and "Accepted dtypes" in text)


def narrower_type(case: Case, kind: str, text: str) -> bool:
    return plain(kind) == "raises ConcretizationTypeError, not TracerBoolConversionError"


def debug_weak(case: Case, kind: str, text: str) -> bool:
    return plain(kind) == "weak type" and case.mode == "nans"


def outside_support(case: Case, kind: str, text: str) -> bool:
    """Gradients of distributions that JAX has as NaN where the density is zero, and numjet as 0."""
    found = case.name.startswith("scipy.stats.") and kind.startswith("grad")
    ours, _, theirs = text.partition("; JAX")
    return found and plain(kind) == "NaN" and "nan" in theirs and "nan" not in ours


def weak_gradient(case: Case, kind: str, text: str) -> bool:
    """Gradients of weak arguments: whether JAX's are weak depends on how a formula joins them."""
    return (case.name.startswith(("scipy.stats.", "scipy.special.", "scipy.linalg."))
            and kind.startswith("grad") and plain(kind) in ("weak type", "no weak type"))


def nan_within(case: Case, kind: str, text: str) -> bool:
    """With debug_nans JAX raises for a NaN among what it computes on the way to other values."""
    ours = text.partition("; JAX")[0]
    return (case.mode == "nans" and plain(kind) == "does not raise FloatingPointError"
            and case.name.startswith("scipy.") and "nan" not in ours)


def wrapped(case: Case, kind: str, text: str) -> bool:
    """Functions of the negative argument, of unsigned integers."""
    return "'uint" in str(case) and plain(kind) in ("value", "NaN") and case.name in (
        "nn.log1mexp", "nn.log_sigmoid", "nn.softmax", "nn.log_softmax")


# JAX computes them by loops, or hashes a traced argument of its rule.
NOT_DIFFERENTIATED = ("scipy.linalg.eigh_tridiagonal", "scipy.linalg.cho_solve",
                      "scipy.linalg.polar")


def narrow(case: Case, kind: str, text: str) -> bool:
    """Values that JAX computes in an argument's 16 bits, where the result has more."""
    found = "float16'" in str(case) and plain(kind) == "value" and not text.startswith("*")
    return found and "float16[" not in text


NARROW = """numpy.percentile numpy.quantile numpy.nanpercentile numpy.nanquantile numpy.cov
    scipy.fft.dct scipy.fft.idct scipy.fft.dctn scipy.fft.idctn scipy.special.owens_t""".split()


def summed_in_16_bits(case: Case, kind: str, text: str) -> bool:
    """Gradients of Python numbers beside 16-bit floats: sums in those, shown in 32 bits."""
    found = "float16'" in str(case) and kind.startswith("grad") and plain(kind) == "value"
    return found and text.startswith("float32[] weak") and "NaN" not in text


def complex_zero(case: Case, kind: str, text: str) -> bool:
    return plain(kind) == "sign of zero" and text.startswith("complex") and case.name.startswith(
        ("numpy.", "lax."))


def one_element(case: Case, kind: str, text: str) -> bool:
    """`lax.reduce` over axes of length 1: the result is as large as the operand."""
    if case.name != "lax.reduce" or plain(kind) not in ("value", "NaN", "infinity"):
        return False
    names = {"jnp": np, "np": np, "inf": np.inf, "nan": np.nan}
    shapes = re.findall(r"array\(|zeros\(", case.args[0][0])
    if len(shapes) != 1 or "bfloat16" in case.args[0][0]:
        return False
    size = np.size(eval(case.args[0][0], names))
    found = re.match(r"\w+\[([\d, ]*)\]", text)
    return bool(found) and size == np.prod([int(n) for n in re.findall(r"\d+", found[1])])


def no_gradient(case: Case, kind: str, text: str) -> bool:
    """JAX's gradients are zeros throughout."""
    sets = "unique", "union1d", "intersect1d", "setdiff1d", "setxor1d"
    numbers = text.partition("; JAX")[2].partition("] ")[2]
    return (kind.startswith("grad") and plain(kind) in ("value", "no weak type")
            and any(word in case.name for word in sets) and not re.search("[1-9]", numbers))


def python_values(case: Case, kind: str, text: str) -> bool:
    """Loops and branches that are run by Python give Python's numbers back in JAX."""
    loops = ("lax.scan", "lax.fori_loop", "lax.while_loop", "lax.cond", "lax.switch", "lax.map",
             "lax.associative_scan")
    return case.name in loops and case.mode == "interpreted" and plain(kind).startswith(
        "class Array")


def large_beside_complex(case: Case, kind: str, text: str) -> bool:
    """`arctan2` of complex numbers whose squares overflow: JAX's are NaN and infinite."""
    ours, _, theirs = text.partition("; JAX")
    return (case.name in ("numpy.arctan2", "numpy.atan2", "lax.atan2")
            and text.startswith("complex") and "nan" in theirs and "nan" not in ours)


def derivative_there(case: Case, kind: str, text: str) -> bool:
    """Derivatives that JAX refuses, by ValueError."""
    return plain(kind) == "does not raise ValueError" and (
        "Betainc gradient" in text
        or case.name in NOT_DIFFERENTIATED and kind.startswith("grad")
        or "random_gamma_grad" in case.name and "Reverse-mode differentiation" in text)


ACCEPTED: tuple[tuple[Test, str], ...] = (
    (named("numpy.empty numpy.empty_like lax.empty", "value"), "values of empty are undefined"),
    (more_capable, "JAX has no such function, dtype or derivative, and numjet has"),
    (subnormal, "XLA makes zeros of subnormal numbers"),
    (complex_infinity, "infinite and undefined complex numbers are as C99 has them"),
    (half_transform, "real transforms of 16-bit floats are done in float32"),
    (both_without_derivative, "neither has this derivative; JAX fails in the loop below it"),
    (sixteen_bits, "matrices of 16-bit floats: JAX traces them, and cannot compile them"),
    (more_dtypes, "integers and 16-bit floats are taken where JAX takes wide floats alone"),
    (named("scipy.special.bessel_jn", "NaN"), "JAX's recurrence overflows in float32"),
    (weak_gradient, "gradients of weak arguments are weak"),
    (nan_within, "JAX meets NaN where the result has none"),
    (lambda case, kind, text: case.name == "scipy.special.factorial" and "float64[" in text
     and plain(kind) == "value", "exponentials of logarithms, up to 700, in doubles"),
    (lambda case, kind, text: case.name == "nn.soft_sign" and "'int" in str(case)
     and plain(kind) == "value", "JAX's absolute value of the least integer is negative"),
    (lambda case, kind, text: case.name == "nn.logsumexp" and case.mode == "nans"
     and "NaN" not in text.partition("; JAX")[2] and "nan" in text.partition("; JAX")[2],
     "a logarithm of a negative sum is a NaN under debug_nans, too"),
    (lambda case, kind, text: case.name == "nn.standardize" and plain(kind) == "value"
     and bool(re.search(r"\d{3}\.", text)),
     "variances of nearly equal numbers, the mean of squares less the square of the mean"),
    (lambda case, kind, text: "is not supported by dot_general on CPU" in text,
     "JAX has no such product of 16-bit floats on CPUs"),
    (lambda case, kind, text: "Called multiply with a float0 array" in text,
     "JAX's derivative multiplies tangents of integers"),
    (lambda case, kind, text: case.name == "scipy.linalg.expm" and plain(kind) == "value"
     and "upper_triangular=True" in str(case),
     "what stands below the diagonal of a matrix that is said to be triangular"),
    (lambda case, kind, text: case.name == "scipy.special.hyp1f1" and kind.startswith("grad")
     and "'float32'" in str(case), "JAX rounds series in doubles to an argument's float32"),
    (lambda case, kind, text: case.name == "random.weibull_min" and "float16'" in str(case)
     and plain(kind) in ("value", "does not raise TypePromotionError"),
     "JAX computes with 16-bit parameters as they are, numjet in the result's dtype"),
    (lambda case, kind, text: case.mode == "strict" and case.name in (
        "nn.log1mexp", "nn.mish", "nn.log_softmax", "nn.standardize", "scipy.special.log_softmax",
        "scipy.special.hyp1f1") and plain(kind) == "does not raise TypePromotionError",
     "constants within JAX's functions do not join integers"),
    (named("scipy.stats.chi2.sf scipy.stats.chi2.logsf scipy.stats.gamma.sf"
           " scipy.stats.gamma.logsf", "value"),
     "JAX takes 1 - P of small a in single precision; held to mpmath by the tests"),
    (lambda case, kind, text: case.name in ("scipy.stats.poisson.logpmf", "scipy.stats.poisson.pmf")
     and kind == "NaN" and re.search(r"\bnan\b", str(case)) is not None,
     "the probability of what is NaN is NaN, as in SciPy"),
    (named("scipy.stats.gumbel_l.logcdf", "value"), "JAX's 1 - exp(-exp(x)) cancels"),
    (lambda case, kind, text: case.name == "nn.logsumexp" and plain(kind) in ("NaN", "value")
     and ("b=-" in str(case) or "b=" in str(case) and "inf" in str(case)),
     "negative sums have no logarithm; XLA makes zeros of small terms before infinite weights"),
    (named("scipy.stats.cauchy. scipy.stats.gumbel_l.ppf scipy.stats.gumbel_r.ppf"
           " scipy.stats.binom."),
     "outside of their domain these are what SciPy gives"),
    (named("scipy.linalg.pascal scipy.linalg.invpascal", "dtype", "value"),
     "JAX computes them in float32 and by logarithms"),
    (named("lax.lgamma scipy.special.gammaln scipy.special.loggamma", "value"),
     "JAX loses digits beside the zeros; held to SciPy by the tests"),
    (lambda case, kind, text: case.name in ("lax.betainc", "scipy.special.betainc")
     and kind in ("value", "jit: value") and text.startswith("float32"),
     "JAX's continued fraction loses digits; held to mpmath by the tests"),
    (large_beside_complex, "JAX's sum of squares overflows where the angle does not"),
    (lambda case, kind, text: case.name in ("numpy.divide", "numpy.true_divide")
     and plain(kind) == "NaN" and str(case).count("'bool'") == 2, "JAX's 0 / 0 of booleans is 0"),
    (lambda case, kind, text: case.name == "numpy.divmod" and kind.startswith("grad")
     and plain(kind) == "NaN" and "0.0" in case.args[1][0],
     "the derivative of a remainder by 0 is not defined"),
    (narrower_type, "both are concretization errors"),
    (named("numpy.array_repr numpy.array_str"), "JAX's class has another name there"),
    (named("numpy.meshgrid numpy.broadcast_arrays", "structure"),
     "tuples, as the Array API standard has them"),
    (named("random.key_dtype", "structure"), "other names of private classes"),
    (named("lax.conv_shape_tuple lax.conv_general_shape_tuple lax.conv_transpose_shape_tuple",
           "class", "weak type"), "Python's integers rather than NumPy's"),
    (named("numpy.divmod numpy.floor_divide numpy.mod numpy.remainder", "sign of zero"),
     "signs of zeros as NumPy and the Array API standard have them"),
    (debug_weak, "with debug_nans JAX jits functions of numbers, which loses weak types"),
    (outside_support, "outside of their support densities are constant"),
    (derivative_there, "derivatives that JAX does not have"),
    (lambda case, kind, text: narrow(case, kind, text) and case.name in NARROW,
     "JAX computes places among the sorted, cosines and the like in an argument's 16 bits"),
    (lambda case, kind, text: case.name == "scipy.optimize.minimize" and (
        "[2, 2]" in text or text.startswith("int")),
     "counts and the estimate of the inverse Hessian depend on the last steps' roundings"),
    (named("numpy.reshape", "class Array"), "JAX gives NumPy's array back"),
    (lambda case, kind, text: "Sizes passed to split must be nonnegative" in text,
     "JAX fails where cuts lie behind the end; NumPy's parts are empty there"),
    (named("numpy.logaddexp2", "value"), "JAX loses digits beside the zeros"),
    (named("scipy.special.bernoulli", "value"), "JAX's are of six digits"),
    (named("scipy.special.expi", "NaN"), "JAX's is NaN at 0 and at infinity"),
    (named("scipy.stats.beta.logcdf scipy.stats.beta.cdf scipy.stats.beta.sf"
           " scipy.stats.beta.logsf", "NaN"), "parameters that are no beta distribution's"),
    (named("lax.cumlogsumexp", "raises TypeError"), "JAX overflows on integers, or gives none"),
    (named("lax.rng_bit_generator", "raises TypeError"),
     "JAX has keys of two words under jit alone, and an assertion otherwise"),
    (named("random.key", "raises TypeError"), "JAX tests the seed's dtype outside of jit alone"),
    (named("numpy.polyfit", "NaN"), "JAX's derivative of x**0 at 0 is NaN"),
    (named("numpy.setdiff1d", "does not raise IndexError"), "JAX indexes into the empty result"),
    (named("numpy.fft.irfft", "does not raise ZeroDivisionError"),
     "JAX divides by the length, 0, of a result without elements"),
    (named("lax.igammac scipy.special.gammaincc", "value"),
     "JAX subtracts from 1 where a and x are small; held to mpmath by the tests"),
    (named("lax.digamma lax.exp2 scipy.stats.norm.logcdf scipy.stats.norm.logsf", "value"),
     "JAX loses digits; held to mpmath by the tests"),
    (named("lax.scatter_max lax.scatter_min lax.reduce_max lax.reduce_min", "value", "infinity"),
     "derivatives beside NaN and infinities"),
    (lambda case, kind, text: case.name in ("lax.reduce_max", "lax.reduce_min", "numpy.max",
     "numpy.min", "numpy.amax", "numpy.amin") and kind.startswith("grad") and "nan" in str(case)
     and plain(kind) == "NaN", "JAX's derivatives beside NaN are NaN eagerly, and 0 jitted"),
    (lambda case, kind, text: case.name == "numpy.spacing" and text.startswith("float16")
     and plain(kind) == "NaN" and "inf" in str(case), "NaN of infinities as NumPy has it"),
    (lambda case, kind, text: case.name == "numpy.trapezoid" and plain(kind) == "NaN"
     and "inf" in str(case), "JAX subtracts the ends of its sum: infinity less infinity"),
    (lambda case, kind, text: case.name in ("lax.linalg.qr", "numpy.linalg.qr", "scipy.linalg.qr")
     and kind.startswith("grad") and "complex" in text and "full_matrices=True" in str(case),
     "phases of the columns of Q beyond those of the matrix are free, and move with it"),
    (lambda case, kind, text: case.name in ("numpy.logaddexp", "numpy.logaddexp2")
     and kind.startswith("grad") and "inf" in str(case),
     "JAX's derivative in x beside an infinite y is exp(x); it is 0"),
    (lambda case, kind, text: text.startswith("bool[") and plain(kind) == "no weak type",
     "the weak type of a boolean has no consequence"),
    (named("numpy.intersect1d numpy.setxor1d",
           "raises ConcretizationTypeError, not NonConcreteBooleanIndexError"),
     "both say that the size is not known while tracing"),
    (named("lax.sign numpy.sign", "sign of zero"), "+0 as the Array API standard has it"),
    (named("numpy.modf", "sign of zero"), "signs of zeros as NumPy has them"),
    (named("numpy.setxor1d", "shape", "value", "does not raise"),
     "assume_unique with repeated elements, or no place for the result"),
    (named("scipy.special.expn", "NaN"), "negative orders"),
    (lambda case, kind, text: case.name == "scipy.special.zeta" and kind.startswith("grad")
     and plain(kind) == "NaN", "where the function is NaN, JAX has derivatives"),
    (lambda case, kind, text: case.name == "numpy.linalg.multi_dot" and plain(kind) == "value"
     and "float64[" in text and ("'float32'" in str(case) or "float16'" in str(case)),
     "the first product is one of narrow floats, rounded"),
    (named("scipy.special.factorial", "NaN"), "JAX's derivative is NaN at the poles"),
    (named("numpy.linalg.slogdet numpy.linalg.det scipy.linalg.det",
           "raises NotImplementedError"),
     "JAX has those of 16 bits of at most three rows alone"),
    (named("numpy.place", "does not raise TypePromotionError"),
     "the array's dtype holds, whatever the values'"),
    (named("numpy.take_along_axis", "raises IndexError"), "JAX reads zeros out of an empty axis"),
    (named("numpy.nextafter", "does not raise Exception"), "JAX's own tracers leak"),
    (named("numpy.vander numpy.logspace", "value"), "JAX's powers of complex numbers are rounded"),
    (wrapped, "JAX negates unsigned integers before it makes floats of them"),
    (lambda case, kind, text: case.name == "nn.dot_product_attention" and "float64" in text
     and plain(kind) == "value", "JAX computes the products of keys in float32"),
    (named("lax.scatter_apply", "raises ValueError, not NotImplementedError"),
     "neither has this derivative"),
    (named("numpy.exp2", "value"), "JAX rounds exp2 of 16-bit floats twice"),
    (abstract_only, "abstract evaluation makes descriptions of Python's numbers, and sees neither "
     "values nor what lowering refuses"),
    (named("numpy.cumulative_prod", "dtype"),
     "small integers become the default one, as the Array API standard has it"),
    (named("numpy.linalg.vector_norm", "dtype", "value", "does not raise ValueError"),
     "norms of integers are floats; JAX's powers of them are integers"),
    (named("numpy.percentile numpy.quantile numpy.nanpercentile numpy.nanquantile numpy.median "
           "numpy.nanmedian", "shape"),
     "with keepdims JAX gives an array without axes one"),
    (named("numpy.nanmedian numpy.nanpercentile numpy.nanquantile", "does not raise IndexError"),
     "JAX indexes into the empty array; NumPy's are NaN"),
    (named("numpy.permute_dims lax.associative_scan", "does not raise TypeError"),
     "negative axes count from the end"),
    (named("numpy.geomspace", "does not raise ValueError"), "JAX promotes ranks of its own arrays"),
    (named("numpy.round numpy.nanmean", "does not raise"), "JAX fails on booleans within"),
    (named("numpy.var numpy.nanvar", "raises ValueError"),
     "JAX refuses integer dtypes in std alone; var gives other dtypes than were asked for"),
    (named("numpy.linalg.pinv scipy.linalg.sqrtm", "does not raise Exception"),
     "JAX's own tracers leak"),
    (lambda case, kind, text: case.name == "lax.clamp" and kind.startswith("grad")
     and "select cases" in text, "JAX's derivative fails where the operand has no axes"),
    (named("numpy.intersect1d", "does not raise ValueError"), "JAX has no result of size 0"),
    (lambda case, kind, text: "must not be narrower than the original type" in text
     and case.name in ("numpy.matvec", "numpy.vecmat"), "JAX fails on weak types within"),
    (lambda case, kind, text: case.name == "lax.reshape" and "Cannot lower jaxpr" in text,
     "JAX sees sizes that do not fit when XLA does"),
    (summed_in_16_bits, "sums of 16-bit floats in another order"),
    (complex_zero, "signs of zeros of complex numbers are as C99 has them"),
    (one_element, "XLA leaves the initial value out where an axis has one element"),
    (no_gradient, "with `size` JAX's gradients are as ours, without it they are lost"),
    (python_values, "loops and branches give arrays, whoever runs them"),
    (named("lax.reduce_window", "does not raise ValueError"),
     "JAX cannot differentiate windows with an initial value of the user's"),
    (named("lax.random_gamma_grad", "does not raise AttributeError"),
     "JAX takes no Python numbers there"),
    (named("numpy.ix_", "raises ConcretizationTypeError, not NotImplementedError"),
     "JAX takes no booleans; ours have to be known"),
    (named("numpy.vander", "NaN"), "JAX's derivative of x**0 at 0 is NaN"),
    (named("numpy.partition numpy.argpartition", "value"),
     "elements on either side of the one at `kth` are in any order"),
    (lambda case, kind, text: case.name in ("numpy.power", "numpy.pow") and plain(kind) == "value"
     and text.startswith("int"), "negative powers of integers, of which JAX makes other integers"),
    (lambda case, kind, text: "iota does not accept dtype bool" in text,
     "ranges of booleans are as NumPy's"),
    (lambda case, kind, text: kind.startswith("grad") and text.startswith("complex")
     and case.name in ("numpy.arccosh", "numpy.acosh", "lax.acosh"),
     "JAX's derivative is that of another branch where the real part is negative"),
    (lambda case, kind, text: case.name == "numpy.geomspace" and plain(kind) == "value"
     and "complex(" in str(case) and "dtype=jnp.float" in str(case),
     "JAX drops imaginary parts before it computes, NumPy afterwards"),
    (lambda case, kind, text: case.name.startswith("lax.dot") and kind.startswith("grad")
     and "preferred_element_type=jnp.float32" in str(case) and "float64" in str(case),
     "JAX rounds the product of a cotangent of 32 bits to 32 bits"),
    (lambda case, kind, text: "Non-hashable static arguments" in text,
     "JAX takes the argument as static"),
)


def reason(case: Case, kind: str, text: str) -> str | None:
    """Why this difference is accepted; None when it is not."""
    return next((why for test, why in ACCEPTED if test(case, kind, text)), None)
