"""Functions of numjet.numpy and their derivatives answer what JAX answers, edge cases included.

Each case was a difference once, or belongs to the family of one. A case is a paragraph.
"""

from __future__ import annotations

from same_answers import differences

CASES = """
jnp.linalg.eigh(jnp.array([[1.,5.],[2.,1.]]), UPLO='L')[0]

jnp.linalg.eigh(jnp.array([[1.,5.],[2.,1.]]), UPLO='U')[0]

jnp.linalg.eigh(jnp.array([[1.,5.],[2.,1.]]), symmetrize_input=False)[0]

jnp.linalg.eigvalsh(jnp.array([[1.,5.],[2.,1.]]), UPLO='U')

jnp.linalg.eigvalsh(jnp.array([[1.,5.],[2.,1.]]))

lax.linalg.eigh(jnp.array([[1.,5.],[2.,1.]]), lower=False, symmetrize_input=False)[1]

lax.linalg.cholesky(jnp.array([[3.,5.],[2.,9.]]), symmetrize_input=False)

lax.linalg.cholesky(jnp.array([[3.,5.],[2.,9.]]))

jnp.linalg.cholesky(jnp.array([[3.,5.],[2.,9.]]), symmetrize_input=False)

jnp.linalg.cholesky(jnp.array([[3.,2.],[1.,9.]]), upper=True)

jnp.linalg.cholesky(jnp.array([[3.,2.],[1.,9.]]), upper=True, symmetrize_input=False)

grad(lambda x: vmap(lambda y: lax.cond(y>0, jnp.sqrt, lambda z: 0.*z, y))(x).sum())(jnp.array([-1.,1.]))

grad(lambda x: vmap(lambda y: lax.switch((y>0).astype(int), [lambda z: 0.*z, jnp.sqrt, jnp.log], y))(x).sum())(jnp.array([-1.,1.]))

jvp(lambda x: vmap(lambda y: lax.cond(y>0, jnp.sqrt, lambda z: 0.*z, y))(x), (jnp.array([-1.,1.]),), (jnp.ones(2),))

grad(grad(lax.pow,0),1)(4.,0.)

grad(grad(jnp.power,0),1)(4.,0.)

grad(grad(lambda x,y: x**y,0),1)(4.,0.)

[grad(grad(lambda x: x**b))(a) for a in (0.,-1.,2.,jnp.inf,jnp.nan) for b in (0.,1.,2.,3.,.5,-1.,0,1,2,3,-1,-2)]

jnp.digitize(jnp.array([0.5,1.,2.5,3.,4.]), jnp.array([3.,2.,1.]))

jnp.digitize(jnp.array([0.5,1.,2.5,3.,4.]), jnp.array([3.,2.,1.]), right=True)

jnp.digitize(jnp.array([0.5,1.,2.5,3.,4.]), jnp.array([1.,2.,3.]), right=True)

jnp.trapezoid(jnp.arange(12.).reshape(3,4)**2, dx=jnp.array([1.,2.]), axis=0)

jnp.trapezoid(jnp.arange(12.).reshape(3,4)**2, dx=jnp.array([1.,2.,3.]), axis=1)

jnp.trapezoid(jnp.arange(12.).reshape(3,4)**2, x=jnp.array([1.,2.,4.]), axis=0)

jnp.trapezoid(jnp.arange(12.).reshape(3,4)**2, x=jnp.arange(12.).reshape(3,4)**1.5, axis=0)

jnp.trapezoid(jnp.arange(12.).reshape(3,4)**2, dx=jnp.ones((2,4))*2, axis=0)

grad(lambda x: jnp.frexp(x)[0])(3.)

[grad(lambda x: jnp.frexp(x)[0])(a) for a in (0.,1.,-2.,jnp.inf,1e-40)]

grad(lambda x: jnp.interp(x, jnp.array([0.,1e-30,1.]), jnp.array([0.,1.,2.])))(.5)

grad(lambda x: jnp.interp(x, jnp.array([0.,0.,1.]), jnp.array([0.,1.,2.])))(0.)

jax.jacrev(lambda xp: jnp.interp(jnp.array([-.5,0.,.25,.5,2.]), xp, jnp.array([0.,1.,2.])))(jnp.array([0.,1e-12,1.]))

[grad(f)(a) for f in (nn.softplus, lambda x: jnp.logaddexp(x,0.), lambda x: jnp.logaddexp(x,1.), lambda x: jnp.logaddexp2(x,1.)) for a in (jnp.nan, jnp.inf, -jnp.inf, 0., 1.)]

[f(a) for f in (nn.softplus, lambda x: jnp.logaddexp(x,0.), lambda x: jnp.logaddexp(x,jnp.inf), lambda x: jnp.logaddexp(x,-jnp.inf), lambda x: jnp.logaddexp2(x,1.)) for a in (jnp.nan, jnp.inf, -jnp.inf, 0., 1.)]

[grad(f)(a) for f in (jax.scipy.special.entr, lambda x: jax.scipy.special.xlogy(x,x), lambda x: jax.scipy.special.xlogy(x,0.), lambda x: jax.scipy.special.xlogy(0.,x), lambda x: jax.scipy.special.xlog1py(x,-1.),lambda x: jax.scipy.special.xlog1py(0.,x), lambda x: jax.scipy.special.rel_entr(x, 1.), lambda x: jax.scipy.special.kl_div(x,1.)) for a in (0.,1.,2.,-1.)]

grad(lambda x: jnp.linalg.slogdet(x)[1])(jnp.zeros((2,2)))

grad(jnp.linalg.det)(jnp.ones((2,2)))

grad(jnp.linalg.det)(jnp.ones((3,3)))

grad(jnp.linalg.det)(jnp.zeros((3,3)))

jnp.logaddexp(jnp.array([1+3j,-2-3j,0j]), jnp.array([1+3j, 2+3.1j,1j*np.pi]))

jnp.logaddexp2(jnp.array([1+3j,-2-3j,0j]), jnp.array([1+3j, 2+3.1j,1j*np.pi]))

grad(lambda z: jnp.logaddexp(z, 1.+2j), holomorphic=True)(.5+3.j)

jnp.cov(jnp.zeros((3,0)))

jnp.cov(jnp.ones((1,3)), rowvar=False)

jnp.corrcoef(jnp.ones((1,3)), rowvar=False)

jnp.corrcoef(jnp.ones((3,)))

[jnp.cov(jnp.arange(12.).reshape(3,4)**2, rowvar=r, bias=b, ddof=d) for r in (True,False) for b in (True,False) for d in (None,0,1,2)]

jnp.cov(jnp.arange(12.).reshape(3,4)**2, jnp.arange(4.), fweights=jnp.array([1,2,3,4]), aweights=jnp.array([.5,1.,2.,3.]))

jnp.cov(jnp.arange(12.).reshape(4,3)**2, jnp.arange(4.)[:,None], rowvar=False)

jnp.corrcoef(jnp.arange(12.).reshape(4,3)**2, jnp.arange(4.)[:,None], rowvar=False)

jnp.cov(jnp.array([]))

jnp.cov(jnp.float32(3.))

[jnp.setxor1d(jnp.array([1,2,2,3]), jnp.array([2,4,3,5]), size=s, fill_value=f, assume_unique=u) for s in (None,3,6) for f in (None,-1) for u in (False,True)]

[jnp.union1d(jnp.array([1,2,2,3]), jnp.array([2,4,3,5]), size=s, fill_value=f) for s in (None,1,9) for f in (None,-1)]

[jnp.setdiff1d(jnp.array([1,2,2,3]), jnp.array([2,4,5]), size=s, fill_value=f, assume_unique=u) for s in (None,1,9) for f in (None,-1) for u in (False,True)]

[jnp.unique(jnp.array([1,2,2,3]), size=s, fill_value=f, return_index=True, return_inverse=True, return_counts=True) for s in (None,1,9) for f in (None,-1) ]

jit(lambda x, y: y is 3, static_argnums=(0,), static_argnames=('y',))(1, 3)

jit(lambda x, y: isinstance(y, int), static_argnums=(0,), static_argnames=('y',))(1, 3)

jit(lambda x, y: isinstance(y, int), static_argnums=(0,), static_argnames=('y',))(1, y=3)

jit(lambda x, y: isinstance(x, int), static_argnums=(0,), static_argnames=('y',))(x=1, y=3)

jit(lambda x, y: isinstance(y, int), static_argnames=('y',))(1, 3)

jit(lambda x, y: isinstance(y, int), static_argnums=(1,))(1, y=3)

c=np.zeros(3,np.int64)
with jax.disable_jit(): r=lax.while_loop(lambda c: c[0]<3, lambda c: c+1, c)
(r,c)

def body(c):
    c += 1
    return c
c=np.zeros(3,np.int32)
with jax.disable_jit(): r=lax.while_loop(lambda c: c[0]<3, body, c)
(r,c)

with jax.disable_jit(): r=lax.scan(lambda c,x: (c+x, c), np.zeros(3,np.float32), np.arange(4.))
r

[jnp.intersect1d(jnp.array([3,7,1,2]), jnp.array([9,2,4,3,5]), size=s, fill_value=f, assume_unique=u, return_indices=r) for s in (None,1,6) for f in (None,-1) for u in (False,True) for r in (False, True)]

jnp.cov(jnp.ones((2,1)), ddof=2)

jnp.cov(jnp.ones((2,2)), ddof=3)

jnp.interp(jnp.array([0.,5e-17,1e-16,.5]), jnp.array([0.,1e-16,1.]), jnp.array([0.,1.,2.]))

grad(lambda x: jnp.interp(x, jnp.array([0.,1e-16,1.]), jnp.array([0.,1.,2.])))(5e-17)

jax.jacrev(lambda x: jnp.interp(jnp.array([0.,5e-17,1e-16,.5]), x, jnp.array([0.,1.,2.])))(jnp.array([0.,1e-16,1.]))

jnp.interp(jnp.array([-.5,0.,.25,.5,2.]), jnp.array([0.,.5,1.]), jnp.array([0.,1.,2.]), left=7., period=.7)

jnp.interp(jnp.array([-.5,0.,.25,.5,2.]), jnp.array([0.,.5,1.]), jnp.array([0.,1.,2.]), left='extrapolate', right='extrapolate')

[jnp.linalg.slogdet(x) for x in (jnp.ones((3,3)), jnp.zeros((2,2)), jnp.eye(2)*1j, -jnp.eye(3), jnp.ones((2,3,3)), jnp.zeros((0,0)))]

[grad(lambda a: jnp.linalg.slogdet(a)[1].sum())(x) for x in (jnp.ones((3,3)), jnp.zeros((2,2)), -jnp.eye(3), jnp.ones((2,3,3)), jnp.arange(9.).reshape(3,3)**2)]

A=jnp.array([[1.+2j,.5],[.3j,2.]])
jvp(jnp.linalg.slogdet, (A,), (A*A,))

A=jnp.array([[1.+2j,.5],[.3j,2.]])
grad(lambda a: jnp.linalg.slogdet(a)[0].real)(A)

A=jnp.array([[1.,.5],[.3,2.]])
jax.hessian(lambda a: jnp.linalg.slogdet(a)[1])(A)

jnp.logaddexp(jnp.array([1+3j,-2-3j,0j,1e3+4j]), jnp.array([1+3j, 2+3.1j,1j*np.pi,2j]))

grad(lambda z: jnp.logaddexp(z, 1.+2j), holomorphic=True)(.5+3.j)

[[jnp.logaddexp(a,b) for a in (jnp.inf,-jnp.inf,jnp.nan,0.,1e30)] for b in (jnp.inf,-jnp.inf,jnp.nan,0.,-1e30)]

[f(jnp.array([0.,1.,2.])) for f in (nn.softmax, nn.log_softmax, nn.logsumexp, nn.standardize, nn.glu)[:4]]

[grad(lambda x: f(x).sum())(jnp.array([0.,jnp.nan,2.])) for f in (nn.softmax, nn.log_softmax, nn.logsumexp, nn.standardize)]

[grad(lambda x: f(x).sum())(jnp.array([0.,jnp.inf,2.])) for f in (nn.softmax, nn.log_softmax, nn.logsumexp)]

[grad(lambda x: f(x).sum())(jnp.array([0.,-jnp.inf,2.])) for f in (nn.softmax, nn.log_softmax, nn.logsumexp)]

[grad(f)(jnp.array([0.,0.,2.,2.])) for f in (jnp.max, jnp.min, jnp.prod, jnp.median, jnp.std, jnp.var, jnp.ptp, jnp.linalg.norm, jnp.nanmax, jnp.nanmean, lambda x: jnp.percentile(x,30.), lambda x: jnp.sort(x)[1], lambda x: jnp.partition(x,1)[1], lambda x: jnp.cumprod(x).sum(), lambda x: jnp.linalg.norm(x,1), lambda x: jnp.linalg.norm(x,jnp.inf), lambda x: jnp.linalg.norm(x,3.))]
"""  # noqa: E501


def test_answers_are_those_of_jax():
    blocks = [block for block in CASES.strip("\n").split("\n\n")]
    assert differences({f"{i}: {block}": block for i, block in enumerate(blocks)}) == {}
