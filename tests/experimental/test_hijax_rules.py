"""Operations with rules of their own, and values that are no arrays under transformations."""

import pytest
from both import both

import numjet as nj
import numjet.numpy as jnp
from numjet.experimental import hijax

ROOT = """
from importlib import import_module
hijax = import_module(jax.__name__ + '.experimental.hijax')
typeof, lax = jax.typeof, jax.lax
class Op(hijax.VJPHiPrimitive):
    def __init__(self, *avals, **params):
        self.in_avals, self.out_aval, self.params = avals, avals[0], params
        super().__init__()
def applied(cls, **params):
    return lambda *xs: cls(*map(typeof, xs), **params)(*xs)
x, y, xs = jnp.float32(3), jnp.float32(5), jnp.arange(3.0)
"""


def test_rules_for_both_modes_and_for_maps():
    both(ROOT + """
class Root(Op):  # whose derivatives are marked by a factor
    def expand(self, x): return x ** (1 / self.n)
    def jvp(self, primals, tangents):
        return self(*primals), 10 * tangents[0] * primals[0]
    def vjp_fwd(self, nonzeros, x): return self(x), x
    def vjp_bwd(self, kept, ct, total):
        total.accum(100 * ct * kept)
        total.accum(ct)
    def batch(self, axis, args, dims): return applied(Root, n=self.n)(*args), dims[0]
f = applied(Root, n=2)
for way, g in (('', f), ('jit', jax.jit(f))):
    out['~run' + way] = g(x)
    out['~jvp' + way] = jnp.stack(jax.jvp(g, (x,), (y,)))
    out['~grad' + way] = jax.grad(g)(x)
    out['~jitted' + way] = jax.jit(jax.grad(g))(x)
    out['~second' + way] = jax.grad(jax.grad(g))(x)
    out['~mapped' + way] = jax.vmap(g)(xs)
    out['~mapped grad' + way] = jax.vmap(jax.grad(g))(xs)
out['~scan'] = jax.grad(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0])(x)
out['~cond'] = jax.grad(lambda x: lax.cond(x > 0, f, lambda x: x, x))(x)
out['name'] = jax.make_jaxpr(f)(x).eqns[0].primitive.name
""")


def test_checkpoint_asks_the_rule_for_forward_mode():
    both(ROOT + """
asked = []
class Square(Op):
    def expand(self, x): return x * x
    def jvp(self, primals, tangents):
        asked.append('jvp')
        return self(*primals), 20 * tangents[0] * primals[0]
    def vjp_fwd(self, nonzeros, x):
        asked.append('vjp')
        return self(x), x
    def vjp_bwd_retval(self, kept, ct): return (200 * ct * kept,)
f = applied(Square)
out['run'] = jax.jit(jax.checkpoint(f))(x)
out['grad'] = jax.jit(jax.grad(jax.checkpoint(f)))(x)
out['without'] = jax.jit(jax.grad(f))(x)
out['asked'] = str(asked)
""")


def test_rules_that_say_where_results_are_mapped():
    both(ROOT + """
class Scaled(Op):
    def expand(self, x, y): return x * y + 1
    def vjp_fwd(self, nonzeros, x, y): return self(x, y), (x, y)
    def vjp_bwd_retval(self, kept, ct): return 2 * ct * kept[1], 3 * ct * kept[0]
    def batch_dim_rule(self, axis, dims): return dims[1] if dims[0] is None else dims[0]
f = applied(Scaled)
wide = jnp.arange(6.0).reshape(2, 3)
out['both'] = jax.vmap(f)(xs, xs)
out['first'] = jax.vmap(f, (0, None))(wide, xs)
out['second'] = jax.vmap(f, (None, 1), 1)(wide[:, 0], wide)
out['grad'] = jax.grad(lambda a: (jax.vmap(f, (0, None))(wide, a) * wide).sum())(xs)
out['mapped grad'] = jax.vmap(jax.grad(f, (0, 1)))(xs, xs)[0]
out['nested'] = jax.vmap(jax.vmap(f, (0, None)), (2, None), 2)(jnp.ones((2, 3, 4)), xs)
""")


def test_rules_are_told_which_arguments_are_differentiated():
    both(ROOT + """
seen = []
class Told(Op):
    def expand(self, x, y): return x * y
    def jvp(self, primals, tangents):
        seen.append([isinstance(t, hijax.Zero) for t in tangents])
        a, b = map(hijax.instantiate_zeros, tangents)
        return self(*primals), a * primals[1] + 2 * primals[0] * b
class Back(Op):
    def expand(self, x, y): return x * y
    def vjp_fwd(self, nonzeros, x, y):
        seen.append(list(nonzeros))
        return self(x, y), (x, y)
    def vjp_bwd_retval(self, kept, ct): return ct * kept[1], ct * kept[0]
class Lin(Op):
    def expand(self, x): return x ** 3
    def lin(self, nonzeros, x): return self(x), x
    def linearized(self, kept, t): return 30 * t * kept
f, g, h = applied(Told), applied(Back), applied(Lin)
out['jvp'] = np.array([jax.jvp(lambda a: f(a, y), (x,), (1.0,))[1],
                       jax.jvp(lambda a: f(y, a), (x,), (1.0,))[1], jax.jvp(f, (x, y), (x, y))[1]])
out['grad'] = np.array([jax.grad(g)(x, y), jax.grad(g, 1)(x, y), *jax.grad(g, (0, 1))(x, y)])
out['linearize'] = np.array([jax.linearize(h, x)[1](2.0), jax.linearize(jax.jit(h), x)[1](2.0)])
out['seen'] = str(seen)
class Two(Back):
    def vjp_bwd(self, kept, ct, *sums): pass
class Bare(Op):
    def expand(self, x): return x
bare = applied(Bare)
out['refused'] = str([err(lambda: Two(typeof(x), typeof(y))), err(lambda: jax.grad(bare)(x)),
                      err(lambda: jax.jvp(bare, (x,), (x,))), err(lambda: jax.linearize(bare, x)),
                      err(lambda: jax.jvp(g, (x, y), (x, y))), err(lambda: jax.linearize(g, x, y))])
""")


VALUES = ROOT + """
from dataclasses import dataclass
@dataclass(frozen=True)
class Twin:
    a: object
    b: object
@dataclass(frozen=True)
class TwinTy(hijax.HiType):
    shape: tuple
    def lo_ty(self): return [hijax.ShapedArray(self.shape, jnp.dtype('float32'))] * 2
    def lower_val(self, v): return [v.a, v.b]
    def raise_val(self, a, b): return Twin(a, b)
    def to_tangent_aval(self): return self
    def vspace_zero(self): return Twin(jnp.zeros(self.shape), jnp.zeros(self.shape))
    def vspace_add(self, x, y): return product.bind(x, y, sign=1)
hijax.register_hitype(Twin, lambda v: TwinTy(v.a.shape))
class Join(hijax.HiPrimitive):
    def abstract_eval(self, a, b): return TwinTy(a.shape), set()
    def to_lojax(self, a, b): return Twin(a, b)
    def jvp(self, primals, tangents): return join.bind(*primals), join.bind(*tangents)
    def transpose(self, ct, a, b): return split.bind(ct)
class Split(hijax.HiPrimitive):
    multiple_results = True
    def abstract_eval(self, v): return v.lo_ty(), set()
    def to_lojax(self, v): return v.a, v.b
    def jvp(self, primals, tangents): return split.bind(*primals), split.bind(*tangents)
    def transpose(self, cts, v): return [join.bind(*cts)]
class Product(hijax.HiPrimitive):  # sign 0: of the parts, else their sum
    def abstract_eval(self, x, y, sign): return x, set()
    def to_lojax(self, x, y, sign):
        return Twin(x.a + y.a, x.b + y.b) if sign else Twin(x.a * y.a, x.b * y.b)
    def jvp(self, primals, tangents, sign):
        (x, y), (s, t) = primals, tangents
        first, second = product.bind(s, y, sign=0), product.bind(x, t, sign=0)
        return product.bind(x, y, sign=0), product.bind(first, second, sign=1)
    def transpose(self, ct, x, y, sign):
        if sign: return ct, ct
        if hijax.is_undefined_primal(x): return product.bind(ct, y, sign=0), None
        return None, product.bind(ct, x, sign=0)
join, split, product = Join('join'), Split('split'), Product('product')
v = join.bind(xs + 1, xs * 2)
square = lambda v: product.bind(v, v, sign=0)
def total(v):
    a, b = split.bind(square(v))
    return a.sum() + (b * b).sum()
def parts(v): return jnp.stack([v.a, v.b])
"""


@pytest.mark.parametrize("jit", ["jax.jit", "(lambda f: f)"])
def test_values_that_are_no_arrays_under_transformations(jit):
    both(VALUES + f"jit = {jit}" + """
out['jit'] = parts(jit(square)(v))
out['made'] = parts(jit(lambda a: join.bind(a, a + 1))(xs))
out['grad'] = parts(jax.grad(jit(total))(v))
out['of arrays'] = jax.grad(jit(lambda a: total(join.bind(a, 2 * a))))(xs)
out['beside'] = jax.grad(jit(lambda a, v: (a * split.bind(v)[1]).sum()))(xs, v)
w, pull = jax.vjp(jit(square), v)
out['vjp'] = jnp.stack([parts(w), parts(pull(w)[0])])
w, t = jax.jvp(jit(square), (v,), (v,))
out['jvp'] = jnp.stack([parts(w), parts(t)])
out['scan captured'] = lax.scan(lambda c, a: (c + a * split.bind(v)[0], a), xs, xs)[0]
n, w = lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, square(c[1])), (0, v))
out['while'] = parts(w)
out['remat'] = jax.grad(jit(jax.checkpoint(lambda a: total(join.bind(a, a)))))(xs)
out['compiled'] = parts(jax.jit(square).lower(v).compile()(v))
def written(v):
    ref = jax.new_ref(v)
    ref[...] = square(ref[...])
    return ref[...]
out['reference'] = parts(jit(written)(v))
out['types'] = str([typeof(v), jax.eval_shape(square, v), jax.jit(square).trace(v).out_info])
""")


def test_values_in_carries_and_branches():
    # JAX's own fail in part: it asks the type for what only avals of arrays have.
    scope: dict = {"out": {}}
    text = VALUES.replace("jax.__name__", "'numjet'") + """
w, _ = lax.scan(lambda c, _: (square(c), None), v, None, length=2)
out['scan'] = parts(w)
out['cond'] = parts(jax.jit(lambda p, v: lax.cond(p, square, lambda v: v, v))(True, v))
"""
    scope |= {"jax": nj, "jnp": jnp}
    exec(text, scope)
    assert nj.jit(lambda a: a * scope["split"].bind(scope["v"])[0])(jnp.arange(3.0)).tolist() == [
        0.0, 2.0, 6.0,
    ]  # fmt: skip
    assert scope["out"]["scan"].tolist() == [[1.0, 16.0, 81.0], [0.0, 16.0, 256.0]]
    assert scope["out"]["cond"].tolist() == [[1.0, 4.0, 9.0], [0.0, 4.0, 16.0]]


def test_what_types_and_operations_lack_is_told():
    class Empty(hijax.HiType):
        pass

    with pytest.raises(NotImplementedError, match="Empty to implement the `lo_ty` method"):
        Empty().lo_ty()
    with pytest.raises(NotImplementedError, match="Empty to implement the `to_tangent_aval`"):
        Empty().to_ct_aval()

    class Wrong(hijax.VJPHiPrimitive):
        def __init__(self, aval):
            self.in_avals, self.out_aval, self.params = (aval,), aval, {}
            super().__init__()

        def expand(self, x):
            return x[None]

    with pytest.raises(TypeError, match="is declared as"):
        nj.jit(lambda x: Wrong(nj.typeof(x))(x))(1.0)


def test_the_linear_rule_of_calls_in_jit():
    both(ROOT + """
class Cube(Op):
    def expand(self, x): return x ** 3
    def lin(self, nonzeros, x): return self(x), x
    def linearized(self, kept, t): return 30 * t * kept ** 2
    def vjp_fwd(self, nonzeros, x): return self(x), x
    def vjp_bwd_retval(self, kept, ct): return (40 * ct * kept ** 2,)
f = applied(Cube)
for way, g in (('', f), ('jit', jax.jit(f))):
    for turn in '01':  # what one asks of a jitted function is not what the other does
        out['~linear' + way + turn] = jax.linearize(g, x)[1](y)
        out['~grad' + way + turn] = jax.grad(g)(x)
""")
