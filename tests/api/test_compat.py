"""Transformations, control flow, custom rules and their kin answer what JAX answers.

Each case was a difference once, or belongs to the family of one. A case is a paragraph.
"""

from __future__ import annotations

from same_answers import differences

CASES = """
vmap(lambda a: a[0], in_axes=((0,None),))((jnp.arange(3.),1.))

vmap(lambda a: (a[0], None, a[1]), in_axes=((0,None),))((jnp.arange(3.),None))

vmap(lambda d: d['a']*2, in_axes=({'a':0,'b':None},))({'a':jnp.arange(3.),'b':None})

vmap(lambda d: d['f'](d['a']), in_axes=({'a':0,'f':None},))({'a':jnp.arange(3.),'f':jnp.sin})

vmap(lambda f, x: f(x), in_axes=(None,0))(jnp.sin, jnp.arange(3.))

vmap(lambda f, x: isinstance(f, str), in_axes=(None,0), out_axes=None)("abc", jnp.arange(3.))

vmap(lambda f, x: isinstance(f, int), in_axes=(None,0), out_axes=None)(3, jnp.arange(3.))

vmap(lambda f, x: isinstance(f, np.ndarray), in_axes=(None,0), out_axes=None)(np.ones(3), jnp.arange(3.))

vmap(lambda x: (x, None), out_axes=(0,None))(jnp.arange(3.))

vmap(lambda x: (x, None))(jnp.arange(3.))

vmap(lambda x: {'a':(x,None),'b':[x,None]}, out_axes={'a':0,'b':[0,None]})(jnp.arange(3.))

vmap(lambda x: {'a':(x,None),'b':[x,None]}, out_axes=({'a':0,'b':None}))(jnp.arange(3.))

vmap(lambda x: (x, 3), out_axes=(0,None))(jnp.arange(3.))

vmap(lambda x: (x, 3.5), out_axes=(0,0))(jnp.arange(3.))

vmap(lambda x: (x, np.float64(3)), out_axes=(0,None))(jnp.arange(3.))

vmap(lambda x: (x, "abc"), out_axes=(0,None))(jnp.arange(3.))

vmap(lambda x: (x, "abc"), out_axes=(0,0))(jnp.arange(3.))

vmap(lambda x: x, in_axes=[0])(jnp.arange(3.))

vmap(lambda x: x, in_axes=True)(jnp.arange(3.))

vmap(lambda x: x, in_axes={'a':0})(jnp.arange(3.))

vmap(lambda x: x, in_axes='a')(jnp.arange(3.))

vmap(lambda x: x, in_axes=(0,0))(jnp.arange(3.))

vmap(lambda x: x, in_axes=1.)(jnp.arange(3.))

vmap(lambda x: x, out_axes='a')(jnp.arange(3.))

vmap(lambda x, y: x+y, in_axes=(0,None))(jnp.arange(3.), (1.,2.))

vmap(lambda x, y: x+y[0]['b'], in_axes=(0,[{'b':0}]))(jnp.arange(3.), [{'b':jnp.ones(3)}])

vmap(lambda x, y: x+y[0]['b'], in_axes=(0,[0]))(jnp.arange(3.), [{'b':jnp.ones(3)}])

vmap(lambda x, y: x+y[0], in_axes=(0,(0,None)))(jnp.arange(3.), [jnp.ones(3), None])

vmap(lambda x, y: x, in_axes=(0,0))(jnp.arange(3.), jnp.ones(2))

vmap(lambda x: x, in_axes=None)(jnp.arange(3.))

vmap(lambda x: x, in_axes=None, axis_size=4)(jnp.arange(3.))

vmap(lambda x: x, in_axes=None, axis_size=4, out_axes=None)(jnp.arange(3.))

vmap(lambda x, *, k: x+k)(jnp.arange(3.), k=jnp.arange(3.))

vmap(lambda x, *, k: x if k is None else 0)(jnp.arange(3.), k=None)

vmap(lambda p: lax.cond(p>0, lambda x: (x, 2.*p), lambda x: (x, 3.*p), 4.), out_axes=(None,0))(jnp.arange(3.))

vmap(lambda p: lax.cond(p>0, lambda x: (5., x), lambda x: (5., x), p), out_axes=(None,0))(jnp.arange(3.))

vmap(lambda p: lax.scan(lambda c,x: ((c[0]+x, c[1]),None), (p,7.), jnp.arange(3.))[0], out_axes=(0,None))(jnp.arange(3.))

vmap(lambda p: lax.while_loop(lambda c: c[0]<3, lambda c: (c[0]+1, c[1]), (p,7.)), out_axes=(0,None))(jnp.arange(3.))

@custom_jvp
def f(x): return 3.
f.defjvp(lambda p,t: (3., 0.))
vmap(lambda x: f(x), out_axes=None)(jnp.arange(3.))

@custom_jvp
def f(x, y): return y, x
f.defjvp(lambda p,t: (f(*p), (t[1],t[0])))
vmap(lambda x: f(x, 2.), out_axes=(None,0))(jnp.arange(3.))

@custom_vjp
def f(x, y): return y, x
f.defvjp(lambda x,y: ((y,x),None), lambda r,ct: (ct[1],ct[0]))
vmap(lambda x: f(x, 2.), out_axes=(None,0))(jnp.arange(3.))

vmap(jit(lambda x: (x, 3.)), out_axes=(0,None))(jnp.arange(3.))

lax.cond(True, 3., lambda x: x+1, 5., lambda x: x-1)

lax.cond(False, 3., lambda x: x+1, 5., lambda x: x-1)

lax.cond(False, (3.,), lambda x: x[0]+1, 5., lambda x: x-1)

lax.cond(True, lambda x: 1. if x is None else 2., lambda x: 3., operand=None)

lax.cond(True, lambda *x: float(len(x)), lambda *x: 3., operand=None)

lax.cond(True, lambda: 2., lambda: 3.)

lax.cond(True, lambda x: x, lambda x: 3., operand=4.)

lax.cond(True, lambda x: x, lambda x: 3., 4., operand=4.)

lax.switch(1, [lambda x: 1., lambda x: 2. if x is None else 5.], operand=None)

lax.switch(1, [lambda *x: float(len(x)), lambda *x: float(len(x))])

lax.switch(True, [lambda *x: 0., lambda *x: float(len(x))])

lax.switch(1., [lambda *x: 0., lambda *x: float(len(x))])

lax.cond(True, lambda x: x, lambda x: x.astype(float), 1)

lax.cond(jnp.array([True]), lambda x: x, lambda x: x, 1)

lax.cond(True, 1, 2, 3)

lax.cond("a", lambda: 1, lambda: 2)

lax.cond(1., lambda: 1, lambda: 2)

lax.cond(1j, lambda: 1, lambda: 2)

lax.cond(None, lambda: 1, lambda: 2)

lax.cond(True, lambda: 1., lambda: 2.)

lax.cond(True, lambda: 1., lambda: jnp.float32(2.))

lax.cond(True, lambda: None, lambda: None)

grad(lambda a: (lambda f: f(2.))(__import__('functools').partial(lambda g, x: g(x), (lambda g: (g.defjvp(lambda p,t: (g(p[0]), t[0]*a)), g)[1])(custom_jvp(lambda x: x*a)))))(3.)

def outer(a):
    @custom_jvp
    def g(x): return x*a
    g.defjvp(lambda p,t: (g(p[0]), t[0]*a))
    return g(2.)
grad(outer)(3.)

def outer(a):
    @custom_jvp
    def g(x): return x*a
    g.defjvp(lambda p,t: (g(p[0]), t[0]*a))
    return grad(g)(2.)
grad(outer)(3.)

def outer(a):
    @custom_jvp
    def g(x): return x*a
    g.defjvp(lambda p,t: (g(p[0]), t[0]*a))
    return g(2.)
vmap(outer)(jnp.arange(3.))

def outer(a):
    @custom_jvp
    def g(x): return x*a
    g.defjvp(lambda p,t: (g(p[0]), t[0]*a))
    return grad(g)(2.)
vmap(outer)(jnp.arange(3.))

def outer(a):
    @custom_jvp
    def g(x): return x*a
    g.defjvp(lambda p,t: (g(p[0]), t[0]*a))
    return g(2.)
jit(outer)(3.)

def outer(a):
    @custom_jvp
    def g(x): return x*a
    g.defjvp(lambda p,t: (g(p[0]), t[0]*a))
    return g(a)
grad(outer)(3.)

def outer(a):
    @custom_jvp
    def g(x): return x*a
    g.defjvp(lambda p,t: (g(p[0]), t[0]*a))
    return g(a)
vmap(grad(outer))(jnp.arange(3.))

def outer(a):
    @custom_jvp
    def g(x): return x*a
    g.defjvp(lambda p,t: (g(p[0]), t[0]*a))
    return vmap(g)(jnp.arange(2.)).sum()
vmap(outer)(jnp.arange(3.))

def outer(a):
    @custom_jvp
    def g(x): return x*a
    g.defjvp(lambda p,t: (g(p[0]), t[0]*a))
    return vmap(g)(jnp.arange(2.)).sum()
grad(outer)(3.)

def outer(a):
    @custom_jvp
    def g(x): return x*a
    g.defjvp(lambda p,t: (g(p[0]), t[0]*a))
    return vmap(grad(g))(jnp.arange(2.)).sum()
[grad(outer)(3.), jit(outer)(3.), vmap(outer)(jnp.arange(2.)), jax.make_jaxpr(outer)(3.).out_avals[0].shape]

def outer(a):
    @custom_vjp
    def g(x): return x*a
    g.defvjp(lambda x: (x*a, None), lambda r,ct: (ct*a,))
    return g(2.)
grad(outer)(3.)

def outer(a):
    @custom_vjp
    def g(x): return x*a
    g.defvjp(lambda x: (x*a, None), lambda r,ct: (ct*a,))
    return grad(g)(2.)
grad(outer)(3.)

def outer(a):
    @custom_vjp
    def g(x): return x*a
    g.defvjp(lambda x: (x*a, None), lambda r,ct: (ct*a,))
    return g(2.)
vmap(outer)(jnp.arange(3.))

def outer(a):
    @custom_vjp
    def g(x): return x*a
    g.defvjp(lambda x: (x*a, None), lambda r,ct: (ct*a,))
    return grad(g)(2.)
jit(outer)(3.)

def outer(a):
    @custom_vjp
    def g(x): return x*a
    g.defvjp(lambda x: (x*a, None), lambda r,ct: (ct*a,))
    return grad(g)(2.)
grad(jit(outer))(3.)

def outer(a):
    @custom_vjp
    def g(x): return x*a
    g.defvjp(lambda x: (x*a, None), lambda r,ct: (ct*a,))
    return vmap(grad(g))(jnp.arange(2.)).sum()
[jit(outer)(3.), vmap(outer)(jnp.arange(2.))]

def outer(a):
    @custom_vjp
    def g(x): return x*a
    g.defvjp(lambda x: (x*a, None), lambda r,ct: (ct*a,))
    return g(a)
[f(3.) for f in (jit(outer), jit(grad(outer)), grad(outer), jit(vmap(grad(outer), axis_size=2,in_axes=None)))]

def outer(a):
    @custom_vjp
    def g(x): return x*a
    g.defvjp(lambda x: (x*a, None), lambda r,ct: (ct*a,))
    return g(a)
vmap(grad(outer))(jnp.arange(3.))

def outer(a):
    @custom_vjp
    def g(x): return x*a
    g.defvjp(lambda x: (x*a, None), lambda r,ct: (ct*a,))
    return g(a)
grad(lambda x: vmap(outer)(x).sum())(jnp.arange(3.))

def outer(a):
    return lax.custom_root(lambda x: x**2-a, 1., lambda f,x0: lax.fori_loop(0,20,lambda i,x: x-f(x)/(2*x), x0), lambda g,y: y/g(1.))
[grad(outer)(3.), jnp.float32(grad(grad(outer))(3.)), vmap(outer)(jnp.arange(1.,3.)), vmap(grad(outer))(jnp.arange(1.,3.)), jit(outer)(3.), jit(grad(outer))(2.)]

def outer(a):
    return lax.custom_root(lambda x: x**2-a, 1., lambda f,x0: a**.5, lambda g,y: y/g(a/a))
[grad(outer)(3.), jnp.float32(grad(grad(outer))(3.)), vmap(outer)(jnp.arange(1.,3.)), vmap(grad(outer))(jnp.arange(1.,3.)), jit(outer)(3.), jit(grad(outer))(2.)]

def outer(a):
    return lax.custom_root(lambda x: x**2-a, a, lambda f,x0: lax.fori_loop(0,20,lambda i,x: x-f(x)/(2*x), x0), lambda g,y: y/g(1.))
[grad(outer)(3.), jnp.float32(grad(grad(outer))(3.)), vmap(outer)(jnp.arange(1.,3.)), vmap(grad(outer))(jnp.arange(1.,3.)), jit(outer)(3.), jit(grad(outer))(2.)]

jit(lambda: jnp.arange(3.).view(jnp.complex64))()

jit(lambda x: x.view(jnp.complex64))(jnp.arange(4.))

jit(lambda x: x.view(jnp.float32))(jnp.arange(4.)+1j)

[jnp.arange(4,dtype=a).view(b) for a in ('int8','uint8','int16','float32','int32','complex64','bfloat16') for b in ('int8','uint8','bool','int16','float32','int32','float16','bfloat16') if not (a!='uint8' and b=='bool')]

lax.bitcast_convert_type(jnp.float32(1.), jnp.int8)

lax.bitcast_convert_type(jnp.ones((2,4),jnp.int8), jnp.float32)

lax.bitcast_convert_type(jnp.ones((2,3),jnp.int8), jnp.float32)

[lax.bitcast_convert_type(jnp.ones((2,4),jnp.int8), b) for b in (jnp.uint8, jnp.int8)]

jit(lambda x: lax.bitcast_convert_type(x, jnp.int8))(jnp.float32(1.))

vmap(lambda x: lax.bitcast_convert_type(x, jnp.int8))(jnp.arange(3.))

lax.bitcast_convert_type(jnp.ones(3,jnp.complex64), jnp.float32)

lax.bitcast_convert_type(True, jnp.int8)

hash(jax.tree.structure((1,2))) == hash(jax.tree.structure((3,4)))

class N:
    def __init__(s,x,d): s.x=x;s.d=d
tree.register_pytree_node(N, lambda n: ((n.x,), n.d), lambda d,c: N(c[0],d))
isinstance(hash(jax.tree.structure(N(1,[2]))),int)

class N:
    def __init__(s,x,d): s.x=x;s.d=d
tree.register_pytree_node(N, lambda n: ((n.x,), n.d), lambda d,c: N(c[0],d))
jit(lambda n: n.x+len(n.d))(N(1,[2]))

class N:
    def __init__(s,x,d): s.x=x;s.d=d
tree.register_pytree_node(N, lambda n: ((n.x,), n.d), lambda d,c: N(c[0],d))
f=jit(lambda n: n.x+len(n.d))
(f(N(1,[2])), f(N(1,[2,3])), jit(lambda n: n)(N(1.,[1,2])).d)

class N:
    def __init__(s,x,d): s.x=x;s.d=d
tree.register_pytree_node(N, lambda n: ((n.x,), n.d), lambda d,c: N(c[0],d))
f=jit(lambda n: n.x)
f(N(1,np.ones(3)))

@custom_vjp
def f(x, y): return x['a']*y[0]
f.defvjp(lambda x,y: (f(x,y),(x,y)), lambda r,ct: ({'a':ct*r[1][0]}, None))
grad(f, argnums=(0,1))({'a':2.}, (3.,4.))

@custom_vjp
def f(x, y): return x['a']*y[0]
f.defvjp(lambda x,y: (f(x,y),(x,y)), lambda r,ct: ({'a':None}, (ct, None)))
grad(f, argnums=(0,1))({'a':2.}, (3.,4.))

@custom_vjp
def f(x, y): return x['a']*y[0]
f.defvjp(lambda x,y: (f(x,y),(x,y)), lambda r,ct: (None, (ct, (None,None))))
grad(f, argnums=(0,1))({'a':2.}, (3.,(4.,5.)))

@custom_vjp
def f(x, y): return x['a']*y[0]
f.defvjp(lambda x,y: (f(x,y),(x,y)), lambda r,ct: (None, (ct, None, None)))
grad(f, argnums=(0,1))({'a':2.}, (3.,None,5.))

@custom_vjp
def f(x, y): return x['a']*y[0]
f.defvjp(lambda x,y: (f(x,y),(x,y)), lambda r,ct: (None, (ct, 5.)))
grad(f, argnums=(0,1))({'a':2.}, (3.,None))

@custom_vjp
def f(x, y): return x['a']*y[0]
f.defvjp(lambda x,y: (f(x,y),(x,y)), lambda r,ct: (jax.custom_derivatives.zero_from_primal(r[0]), jax.custom_derivatives.zero_from_primal(r[1])))
grad(f, argnums=(0,1))({'a':2.}, (3.,4.))

jax.custom_derivatives.zero_from_primal({'a':2., 'b':jnp.ones(3), 'c':jnp.arange(3)})

jax.eval_shape(lambda: jax.ShapeDtypeStruct((3,),jnp.float32))

jax.eval_shape(lambda x: {'a': x, 'b': 3}, jax.ShapeDtypeStruct((3,),jnp.float32))['b'].dtype.name

str(jax.make_jaxpr(lambda x: lax.axis_index('i'), axis_env=[('i',4)])(1.).out_avals)

jit(lambda x: x+1, in_shardings=None)(1.)

jit(lambda x: x+1, in_shardings=(None,))(1.)

jit(lambda x: x+1, in_shardings=jax.sharding.SingleDeviceSharding(jax.devices()[0]), out_shardings=None)(1.)

jit(lambda x,y: x+y, in_shardings=(jax.sharding.SingleDeviceSharding(jax.devices()[0]),None), out_shardings=jax.sharding.SingleDeviceSharding(jax.devices()[0]))(1.,2.)

jit(lambda x: x+1, device=jax.devices()[0])(1.)

jit(lambda x: x+1, backend='cpu')(1.)

lax.add(jnp.ones((3,4)), jnp.ones((3,1)))

[getattr(lax,f)(jnp.ones((3,4)), jnp.ones((1,4))) for f in 'add sub mul div max min pow atan2 rem eq lt ge nextafter'.split()]

lax.add(jnp.ones((3,4)), jnp.ones(4))

lax.add(jnp.ones((3,4)), jnp.ones((3,2)))

lax.add(jnp.ones((3,4)), 1.)

lax.add(1, 1.5)

lax.add(jnp.ones(3), jnp.ones(3,int))

lax.select(jnp.ones((3,1),bool), jnp.ones((3,4)), jnp.ones((3,4)))

lax.clamp(jnp.zeros((1,4)), jnp.ones((3,4)), jnp.ones((3,4)))

grad(lambda y: lax.mul(jnp.ones((3,4)), y).sum())(jnp.ones((3,1)))

vmap(lambda y: lax.mul(jnp.ones((3,4)), y))(jnp.ones((5,3,1)))

jnp.expand_dims(jnp.ones((3,4)), range(2))

jnp.expand_dims(jnp.ones((3,4)), [0,3])

jnp.squeeze(jnp.ones((1,3,1)), [0,2])

lax.expand_dims(jnp.ones((3,4)), range(2))

str(lax.dtype(np.dtype('int32')))

[str(lax.dtype(x)) for x in (1, 1., True, 1j, np.float64(3), jnp.float32, np.int64, jnp.ones(3))]

str(jnp.result_type(np.dtype('int64')))

[f for f in (jit(lambda x: vjp(jnp.sin, x)[1])(2.)(1.),)]

jit(lambda x: vjp(lambda y,z: y*z*jnp.sin(z), x, x+1)[1])(2.)(1.)

jit(lambda x: jax.tree.structure((x,x)))(1.) == jax.tree.structure((1,1))

jit(lambda x: (x, jax.tree.structure((x,x))))(1.)[1] == jax.tree.structure((1,1))

jit(lambda x: "abc")(1.)

jit(lambda x: jax.linearize(jnp.sin, x)[1])(2.)(1.)

f=jax.linearize(jnp.sin, 2.)[1]
jit(lambda f, x: f(x))(f, 3.)

f=vjp(jnp.sin, 2.)[1]
jit(lambda f, x: f(x))(f, 3.)

f=vjp(jnp.sin, jnp.arange(3.))[1]
len(jax.tree.leaves(f))

vmap(lambda x: vjp(jnp.sin, x)[1])(jnp.arange(3.)) is not None

lax.map(lambda x: vjp(jnp.sin, x)[1], jnp.arange(3.)) is not None

with jax.checking_leaks(): r=jit(lambda x: jnp.sin(x)+grad(jnp.sin)(x))(1.)
r

with jax.checking_leaks(): r=vmap(jit(lambda x: lax.scan(lambda c,y: (c+y, c*y), x, jnp.arange(3.))))(jnp.ones(3))
r

l=[]
with jax.checking_leaks(): r=grad(lambda x: (l.append(x), x)[1])(1.)
0

def f(x):
    with jax.ensure_compile_time_eval():
        return x+1
[grad(f)(1.), vmap(f)(jnp.ones(3)), f(1.)]

def f(x):
    with jax.ensure_compile_time_eval():
        return x+1
jit(f)(1.)

def f(x):
    with jax.ensure_compile_time_eval():
        y = jnp.sin(jnp.ones(3))
        assert isinstance(y, jax.Array) and float(y[0])>0
    return x+y
[jit(f)(1.), grad(lambda x: f(x).sum())(1.), vmap(f)(jnp.ones(2))]

def f(x):
    with jax.ensure_compile_time_eval():
        y = jit(jnp.sin)(jnp.ones(3))
        z = vmap(jnp.sin)(jnp.ones(3)); w=grad(jnp.sin)(1.); l=lax.fori_loop(0,3,lambda i,c: c+i,0); k=lax.cond(True, lambda: 1., lambda: 2.)
        assert all(isinstance(float(t), float) for t in (y[0],z[0],w,l,k))
    return x+y
jit(f)(1.)

jnp.insert(jnp.arange(5), 2, 9)

jit(lambda i: jnp.insert(jnp.arange(5), i, 9))(2)

jit(lambda i: jnp.insert(jnp.arange(5), i, 9))(jnp.array([1,2]))

jit(lambda i: jnp.insert(jnp.arange(5), jnp.array([1,2]), i))(7)

vmap(lambda i: jnp.insert(jnp.arange(5), i, 9))(jnp.arange(3))

jit(lambda k: jnp.tri(3,4,k))(1)

jit(lambda k: jnp.eye(3,4,k))(1)

vmap(lambda k: jnp.eye(3,4,k))(jnp.arange(-1,2))

jit(lambda n: jnp.roll(jnp.arange(5),n))(3)

jit(lambda n: jnp.take(jnp.arange(5),n, mode='wrap'))(7)

jit(lambda n: jnp.delete(jnp.arange(5),n, assume_unique_indices=True))(jnp.array([1,3]))

jit(lambda n: jnp.linspace(n, n+3, 4))(3)

jit(lambda n: jnp.arange(n))(3)

jit(lambda d: jnp.diff(jnp.arange(5.), prepend=d))(3.)

jit(lambda d: jnp.percentile(jnp.arange(5.), d))(30.)

jit(lambda d: jnp.nan_to_num(jnp.arange(3.)/0, nan=d, posinf=d, neginf=d))(3.)

jit(lambda d: jnp.unwrap(jnp.arange(0,12.,3), discont=d, period=d))(3.)

jit(lambda d: jnp.pad(jnp.arange(3.), 2, constant_values=d))(3.)

jit(lambda d: jnp.full((2,),d))(3.)

jit(lambda d: jnp.isclose(1., 1.1, rtol=d, atol=d))(3.)

jit(lambda d: jnp.geomspace(1., d, 4))(8.)

jit(lambda d: jnp.histogram(jnp.arange(5.), range=(0.,d)))(4.)

jit(lambda d: jnp.histogram(jnp.arange(5.), bins=d))(jnp.arange(4.))

jit(lambda d: jnp.gradient(jnp.arange(5.)**2, d))(2.)

jit(lambda d: jnp.trapezoid(jnp.arange(5.)**2, dx=d))(2.)

jit(lambda d: jnp.convolve(jnp.arange(5.), d))(jnp.arange(3.))

jit(lambda d: jnp.where(d, 1., 2.))(True)

jit(lambda d: jnp.bincount(d, length=4))(jnp.arange(3))

jit(lambda d: jnp.repeat(jnp.arange(3), d, total_repeat_length=5))(2)

jit(lambda d: jnp.linalg.pinv(jnp.eye(3), d))(.1)

jit(lambda d: jnp.linalg.lstsq(jnp.eye(3), jnp.ones(3), d)[0])(.1)

jit(lambda d: jnp.linalg.matrix_rank(jnp.eye(3), d))(.1)

jit(lambda d: jnp.var(jnp.arange(3.), ddof=d))(1)

jit(lambda i: lax.dynamic_slice_in_dim(jnp.arange(5),i,2))(1)

jit(lambda i: jnp.ldexp(1.,i))(1)

jit(lambda i: jnp.logspace(0, 2, 3, base=i))(2.)

jit(lambda i: nn.leaky_relu(-1., i))(.2)

jit(lambda i: nn.elu(-1., i))(.2)

jit(lambda i: nn.celu(-1., i))(.2)

jit(lambda i: nn.one_hot(i, 4))(2)

jit(lambda i: jnp.fill_diagonal(jnp.ones((3,3)), i, inplace=False))(2.)

jit(lambda i: jnp.piecewise(jnp.arange(3.), [jnp.arange(3.)<i], [lambda x: x, 9.]))(1.)

jit(lambda i: jnp.select([i>0], [jnp.arange(3)], i))(1)

jit(lambda i: jnp.interp(jnp.arange(3.), jnp.arange(3.), jnp.arange(3.)*2, left=i, right=i, period=i))(2.)

vjp(lambda x: 3., 1.)[0]

vjp(lambda x: x.astype(int), jnp.ones(2))[1](np.zeros(2, jax.dtypes.float0))

jax.value_and_grad(lambda x: 3.)(1.)

grad(lambda x: 3.)(1.)

grad(lambda x: x*1., allow_int=True)(1)

grad(lambda x: (x**2).sum(), allow_int=True)(jnp.arange(3))

jax.jacfwd(lambda x: x*2.)(1.)

jax.jacfwd(jnp.sin)(1.)

jax.jacrev(jnp.sin)(1.)

jax.hessian(jnp.sin)(1.)

jax.jacfwd(lambda x: (x, 3.))(1.)

jax.jacrev(lambda x: (x, 3.))(1.)

jax.jacfwd(lambda x,y: x*y, argnums=(0,1))(1.,2.)

jax.jacfwd(lambda x: (x*2., 3), has_aux=True)(1.)

jax.jacrev(lambda x: x, allow_int=True)(3)

@custom_jvp
def f(x): return 3
f.defjvp(lambda p,t: (3, np.zeros((), jax.dtypes.float0)))
f(1.)

@custom_jvp
def f(x): return isinstance(x, float)
f.defjvp(lambda p,t: (f(p[0]), np.zeros((), jax.dtypes.float0)))
(f(1.), f(np.float32(1.)), f(jnp.ones(2)))

@custom_vjp
def f(x): return 3
f.defvjp(lambda x: (3, True), lambda r,ct: (1. if r is True else 2.,))
(f(1.), vjp(f, 1.)[0], jax.value_and_grad(lambda x: f(x)+x)(1.))

@custom_vjp
def f(x, n): return x*n
f.defvjp(lambda x,n: (x*n, n), lambda r,ct: (ct*r, None))
(grad(f)(1., 3), vmap(grad(f), (0,None))(jnp.ones(2), 3), jit(grad(f))(1., 3), vmap(grad(f))(jnp.ones(2), jnp.arange(2)))

@custom_vjp
def f(x, n): return x*n
f.defvjp(lambda x,n: (x*n, n), lambda r,ct: (ct*r, None))
grad(f, argnums=(0,1), allow_int=True)(1., 3)

lax.scan(lambda c,x: (c, x), 3., jnp.arange(3.))

lax.scan(lambda c,x: (c, c), 3., jnp.arange(3.))

lax.scan(lambda c,x: (c, 2.), 3., None, length=3)

lax.scan(lambda c,x: (c+1, c), 3, None, length=3)

lax.scan(lambda c,x: (c+x, c), 3, jnp.arange(3.))

lax.scan(lambda c,x: (c*x, c), 3., jnp.arange(3))

lax.scan(lambda c,x: (c*x, c), jnp.float32(3.), jnp.arange(3))

lax.scan(lambda c,x: (c, c), np.ones(2), jnp.arange(3.))

lax.scan(lambda c,x: (c, c), np.ones(2,np.int64), np.arange(3.))

lax.scan(lambda c,x: ((c[0],c[1]+x), None), (np.ones(2,np.int64), 1.), np.arange(3.))

lax.scan(lambda c,x: ((c[1],c[0]), x), (2.,3.), jnp.arange(3.))

lax.while_loop(lambda c: c[0]<3, lambda c: (c[0]+1, c[1]), (0,np.ones(2)))

lax.while_loop(lambda c: c[0]<3, lambda c: (c[0]+1, c[1], c[2]), (0,5.,(True, np.int64(3))[1]))

lax.while_loop(lambda c: c<3., lambda c: c+1, 0)

lax.while_loop(lambda c: c<3., lambda c: c+jnp.float32(1), 0)

lax.while_loop(lambda c: c<3., lambda c: c+jnp.float32(1), 0.)

lax.while_loop(lambda c: c<3., lambda c: c+1., jnp.int32(0))

lax.while_loop(lambda c: c<3., lambda c: c+1., jnp.float32(0))

lax.while_loop(lambda c: c<3, lambda c: 5., 0)

lax.fori_loop(0, 3, lambda i,c: c+i, 0)

lax.fori_loop(0, jnp.int32(3), lambda i,c: c+i, 0)

lax.fori_loop(0, np.int32(3), lambda i,c: i, 0)

lax.fori_loop(0, 3, lambda i,c: i, 0)

lax.fori_loop(jnp.int32(0), 3, lambda i,c: i, 0)

lax.fori_loop(jnp.int8(0), 3, lambda i,c: i, jnp.int8(0))

lax.fori_loop(jnp.int8(0), jnp.int8(3), lambda i,c: i, jnp.int8(0))

lax.fori_loop(jnp.int8(0), jnp.int16(3), lambda i,c: i, jnp.int8(0))

lax.fori_loop(0, 3, lambda i,c: c, 7.)

lax.fori_loop(0., 3, lambda i,c: c+1., 7)

lax.fori_loop(0, 3, lambda i,c: (c[0], c[1]+i), (7., 2))

lax.fori_loop(0, 3, lambda i,c: (c[0]*2, c[1]+i), (np.ones(2,np.int64), 2.))

lax.reduce(jnp.ones(3), 0., lax.max, (0,))

lax.reduce(jnp.ones((2,3)), -jnp.inf, jnp.maximum, (0,))

lax.reduce((jnp.ones(3),jnp.arange(3)), (0.,0), lambda x,y: (x[0]+y[0], x[1]+y[1]), (0,))

lax.convert_element_type(1., int)

lax.convert_element_type(jnp.ones(2), int)

lax.convert_element_type(1, float)

lax.convert_element_type(1, jnp.float32)

lax.convert_element_type(jnp.ones(2), np.float32)

lax.convert_element_type(jnp.ones(2), np.float64)

lax.convert_element_type(1., None)

lax.convert_element_type(lax.full((2,),1.), None)

lax.convert_element_type(lax.full((2,),1), float)

lax.convert_element_type(True, bool)

jnp.asarray(1., float)

jnp.asarray(1.).astype(float)

jnp.asarray(1).astype(int)

jnp.asarray(1)

jnp.array(1)

jnp.var(jnp.arange(3.)+1j, dtype=jnp.complex64)

[getattr(jnp,f)(jnp.arange(3.)+1j) for f in ('var','std','nanvar','nanstd','mean')]

[getattr(jnp,f)(jnp.arange(3.), dtype=jnp.complex64) for f in ('var','std','nanvar','nanstd','mean','sum','prod','nansum','nanmean')]

[getattr(jnp,f)(jnp.arange(3), dtype=d) for f in ('var','std','nanvar','nanstd','mean','sum','prod','nansum','nanmean') for d in (jnp.float16, jnp.float32, jnp.bfloat16)]

jnp.mean(jnp.arange(3.), dtype=jnp.int32)

jnp.unwrap(jnp.array([0,3,6]), period=4)

jnp.unwrap(jnp.array([0,3,6]))

jnp.unwrap(jnp.array([0.,3.,7.]), period=4)

jnp.unwrap(jnp.array([0,3,7,2],jnp.int8), period=4)

jnp.ravel_multi_index((jnp.array([1],jnp.int8),jnp.array([2],jnp.int8)), (3,4))

jnp.ravel_multi_index((jnp.array([1],jnp.int32),jnp.array([2],jnp.int8)), (3,4))

jnp.ravel_multi_index((1,2), (3,4))

jnp.ravel_multi_index(np.array([[1,2],[2,3]]), (3,4))

jnp.unravel_index(jnp.array([5],jnp.int8), (3,4))

jnp.linspace(jnp.zeros((2,2)),1.,num=0,retstep=True)

jnp.linspace(0.,1.,num=0,retstep=True)

jnp.linspace(0.,1.,num=1,retstep=True)

jnp.linspace(jnp.zeros((2,2)),1.,num=1,retstep=True)

jnp.linspace(0,1,num=3,retstep=True, dtype=int)

jnp.gradient(jnp.arange(4.)**2, axis=(0,))

jnp.gradient(jnp.arange(4.)**2, axis=0)

jnp.gradient(jnp.arange(6.).reshape(2,3)**2)

jnp.gradient(jnp.arange(6.).reshape(2,3)**2, axis=1)

jnp.gradient(jnp.arange(6.).reshape(2,3)**2, 2., axis=(1,))

jnp.gradient(jnp.arange(6.).reshape(2,3)**2, 2., 3.)

jax.dtypes.itemsize_bits('int64') if hasattr(jax.dtypes,'itemsize_bits') else 0

nn.dot_product_attention(*[jnp.ones((1,4,2,8),jnp.bfloat16)]*3, return_residual=True)

nn.dot_product_attention(*[jnp.ones((1,4,2,8),jnp.float32)]*3, return_residual=True)

nn.dot_product_attention(*[jnp.ones((1,4,2,8),jnp.float16)]*3)
"""  # noqa: E501


def test_answers_are_those_of_jax():
    blocks = [block for block in CASES.strip("\n").split("\n\n")]
    assert differences({f"{i}: {block}": block for i, block in enumerate(blocks)}) == {}
