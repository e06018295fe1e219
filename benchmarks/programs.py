"""Texts for generated.py whose operands have shapes of their own: what programs are made of.

`PROGRAMS` has kinds of programs: a weight, shapes, element types and texts of x and y. {n}, {h},
{w}, {c}: the extents of the axes; {ids}: places along the first axis, as many as y has numbers, at
most 4096; {labels}: one of 64 numbers for each place along the first axis; {classes}: one of the
last axis for each place along the others. Nothing but texts: generated.py draws and times them.
"""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    """One kind of programs: how often it is drawn, and of what."""

    weight: float
    shapes: tuple[tuple[int, ...], ...]
    dtypes: str
    texts: str


FLOATS = "float32 float32 float32 bfloat16 float16"

RUNS = (
    "jnp.convolve(x,y[:9],mode='same'); jnp.convolve(x,y[:64],mode='valid'); "
    "jnp.interp(x,jnp.linspace(-3,3,50),jnp.cos(jnp.arange(50.))); "
    "jnp.interp(x,jnp.sort(y[:1000]),y[:1000]); jnp.polyval(y[:7],x); "
    "jnp.isin((x*20).astype('int32'),jnp.arange(0,40,7)); "
    "jnp.unique((x*20).astype('int32'),size=210); jnp.nonzero(x>1,size=200000)[0]; "
    "lax.cummax(x); lax.associative_scan(jnp.maximum,x); jnp.gradient(x); jnp.trapezoid(x,y); "
    "jnp.packbits(x>0); jnp.unpackbits(jnp.abs(x*50).astype('uint8')); x[jnp.argsort(y)]; "
    "jnp.bincount(jnp.abs(x*9).astype('int32')%64,weights=y,length=64); jnp.partition(x,1000); "
    "jnp.histogram(x,50,range=(-3,3))[0]; jnp.searchsorted(jnp.sort(y),x); "
    "jnp.where(jnp.isnan(x),0,x); jnp.nan_to_num(x); "
    "jnp.cumsum(x)[{n}//10:]-jnp.cumsum(x)[:-({n}//10)]; lax.sort((x,y),num_keys=1)[1]; "
    "jnp.exp(-x**2/2)/jnp.sqrt(2*jnp.pi); jnp.mean(jnp.maximum(x-y,0)**2); "
    "jax.grad(lambda v: jnp.sum(jnp.interp(v,jnp.linspace(-3,3,50),jnp.cos(jnp.arange(50.)))))("
    "x); jax.grad(lambda v: jnp.sum(jnp.convolve(v,y[:9])**2))(x); "
    "jax.grad(lambda v: jnp.sum(jnp.cumsum(v)**2))(x); "
    "jax.grad(lambda v: jnp.sum(jnp.sort(v)[:9]))(x); jnp.select([x<-1,x<0,x<1],[y,x,2*x],0); "
    "jnp.piecewise(x,[x<0,x>=0],[lambda v:-v,lambda v:v*v]); jnp.hypot(x,y); jnp.arctan2(x,y); "
    "jnp.fmod(x,y); jnp.heaviside(x,y); jnp.sinc(x); "
    "x[jnp.clip((y*1000).astype('int32')+jnp.arange({n}),0,{n}-1)]; jnp.median(x); "
    "jnp.percentile(x,jnp.array([5.,95.])); jnp.linalg.norm(x-y,ord=1); jnp.allclose(x,y); "
    "jnp.array_equal(x,y); jnp.argmax(x); jnp.corrcoef(x,y); jnp.average(x,weights=jnp.abs(y)); "
    "jnp.digitize(x,jnp.sort(y[:31])); "
    "jnp.cross(x[:{n}//3*3].reshape(-1,3),y[:{n}//3*3].reshape(-1,3)); jax.nn.logsumexp(x); "
    "jnp.ldexp(x,3); jnp.frexp(x); jnp.modf(x); jnp.diff(x,n=2)"
)
INTEGERS = (
    "x&y; x^0x55; x<<2; x>>3; x//y.clip(1); x%y.clip(1); jnp.bitwise_count(x); "
    "jnp.minimum(x,y)-x; x.astype('float32')/7; jnp.clip(x,10,50); jnp.where(x>y,x-y,y-x); x==y; "
    "(x>10)&(x<50); (x>10)|(y<5); jnp.any(x>y); jnp.all(x==y); jnp.sum(x>y); jnp.mean(x); "
    "jnp.max(x); x*3+y; jnp.gcd(x,y); jnp.sort(x); jnp.argsort(x); jnp.cumsum(x); "
    "jnp.cumsum(x>5); jnp.abs(x-y); x.astype('float16'); (x.astype('int32')*y).astype(x.dtype); "
    "jnp.argmax(x); x>=0; x<0; jnp.where(x>=0,x,y); jnp.where(x%2==0,x//2,3*x+1); "
    "jnp.unique(x,size=100); jnp.bincount(x.astype('int32').clip(0),length=101); x[::-1]; "
    "x[::2]|y[1::2]; jnp.repeat(x,2); jnp.isin(x,jnp.arange(0,40,7,dtype=x.dtype)); "
    "jnp.sum(x,dtype='int32'); jnp.dot(x,y); jnp.flip(x)+y; jnp.roll(x,1)-x; "
    "jnp.nonzero(x>50,size=100000)[0]; jnp.take(jnp.arange(256.),x.astype('int32').clip(0)); "
    "jnp.take(jnp.arange(256)[::-1].astype(x.dtype),x.astype('int32').clip(0))"
)
PICTURES = (
    "lax.conv_general_dilated(x,y.ravel()[:9*{c}*16].reshape(3,3,{c},16),(1,1),'SAME',"
    "dimension_numbers=('NHWC','HWIO','NHWC')); "
    "lax.conv_general_dilated(x,y.ravel()[:9*{c}*8].reshape(3,3,{c},8),(2,2),'SAME',"
    "dimension_numbers=('NHWC','HWIO','NHWC')); "
    "lax.conv_general_dilated(x,y.ravel()[:{c}*16].reshape(1,1,{c},16),(1,1),'SAME',"
    "dimension_numbers=('NHWC','HWIO','NHWC')); "
    "lax.conv_general_dilated(x,y.ravel()[:9*{c}].reshape(3,3,1,{c}),(1,1),'SAME',"
    "dimension_numbers=('NHWC','HWIO','NHWC'),feature_group_count={c}); "
    "lax.conv_general_dilated(x.transpose(0,3,1,2),y.ravel()[:9*{c}*8].reshape(8,{c},3,3),(1,1),"
    "'SAME'); (x-x.mean((0,1,2)))*lax.rsqrt(x.var((0,1,2))+1e-5)*y[0,0,0]+y[0,0,1]; "
    "jax.grad(lambda v: jnp.sum(((v-v.mean((0,1,2)))*lax.rsqrt(v.var((0,1,2))+1e-5))*y))(x); "
    "(x-x.mean((1,2),keepdims=True))*lax.rsqrt(x.var((1,2),keepdims=True)+1e-5); "
    "nn.relu(x*y[0,0,0]+y[0,0,1]); "
    "lax.reduce_window(x,-jnp.inf,lax.max,(1,2,2,1),(1,2,2,1),'VALID'); "
    "lax.reduce_window(x.astype('float32'),0.,lax.add,(1,3,3,1),(1,1,1,1),'SAME'); "
    "jax.grad(lambda v: jnp.sum(lax.reduce_window(v,-jnp.inf,lax.max,(1,2,2,1),(1,2,2,1),"
    "'VALID')))(x); x.mean((1,2)); x.transpose(0,3,1,2); x.transpose(0,3,1,2)*2; x[:,::-1]; "
    "x[:,:,::-1]; jnp.pad(x,((0,0),(1,1),(1,1),(0,0))); "
    "jnp.pad(x,((0,0),(2,2),(2,2),(0,0)),mode='reflect'); "
    "jnp.pad(x,((0,0),(1,1),(1,1),(0,0)),mode='edge')*2; x[:,2:-2,2:-2]; x[:,1:]-x[:,:-1]; "
    "x[:,:,1:]-x[:,:,:-1]; "
    "x[:,1:-1,1:-1]*4-x[:,2:,1:-1]-x[:,:-2,1:-1]-x[:,1:-1,2:]-x[:,1:-1,:-2]; "
    "jnp.repeat(jnp.repeat(x,2,1),2,2); x[:,::2,::2]; "
    "(x[:,::2,::2]+x[:,1::2,::2]+x[:,::2,1::2]+x[:,1::2,1::2])/4; "
    "x.reshape({n},{h}//4,4,{w}//4,4,{c}).transpose(0,1,3,2,4,5); jnp.roll(x,(1,1),(1,2)); "
    "jax.image.resize(x,({n},{h}//2,{w}//2,{c}),'linear'); "
    "x.reshape({n},-1)@y.reshape({n},-1).T; jnp.rot90(x,1,(1,2)); jnp.flip(x,(1,2)); "
    "jnp.clip(x*1.2+0.1,0,1); x@y.ravel()[:{c}*3].reshape({c},3); "
    "jnp.einsum('nhwc,c->nhw',x,y[0,0,0]); x.max((1,2)); jnp.argmax(x,-1); nn.softmax(x,-1); "
    "x/jnp.linalg.norm(x,axis=-1,keepdims=True); jnp.where(y>0,x,0); jnp.concatenate([x,y],-1); "
    "jnp.where(jnp.arange({h})[:,None,None]<{h}//2,x,y)"
)
BYTES = (
    "x.astype('float32')/255; (x.astype('float32')/255-0.5)/0.25; "
    "jnp.clip(x.astype('int32')+20,0,255).astype('uint8'); 255-x; "
    "jnp.where(x>50,255,0).astype('uint8'); jnp.where(x>50,x,0); x[:,::-1]; x[:,:,::-1]; "
    "x[...,::-1]; x[:,::2,::2]; x[:,1:]-x[:,:-1]; ((x.astype('uint16')+y)//2).astype('uint8'); "
    "jnp.maximum(x,y); x^y; x>>2; x*2; (x.astype('float32')@y.ravel()[:{c}].astype('float32')); "
    "x.astype('float32').mean((1,2)); jnp.pad(x,((0,0),(1,1),(1,1),(0,0)),mode='edge'); "
    "x.transpose(0,3,1,2); x.transpose(0,3,1,2).astype('float32')/255; "
    "x.sum((1,2),dtype='int32'); x.max((1,2)); x.min((0,1,2)); "
    "jnp.repeat(jnp.repeat(x,2,1),2,2); jnp.take(jnp.arange(256)[::-1].astype('uint8'),x); "
    "jnp.bincount(x.ravel(),length=256); x[...,0]; jnp.concatenate([x,y],-1); "
    "jnp.stack([x[...,0]]*3,-1); (x[:,::2,::2].astype('uint16')+x[:,1::2,1::2]).astype('uint8'); "
    "jnp.roll(x,(1,1),(1,2)); "
    "lax.reduce_window(x,x.dtype.type(0),lax.max,(1,2,2,1),(1,2,2,1),'VALID'); "
    "(x>y).astype('uint8'); "
    "lax.reduce_window(x.astype('int32'),0,lax.add,(1,3,3,1),(1,1,1,1),'SAME'); x.mean((1,2)); "
    "jnp.argmax(x,-1); (x>50).mean((1,2)); jnp.any(x>90,-1); x.at[:,2:9,3:11].set(0); "
    "jnp.tile(x[:,:,:,:1],(1,1,1,3)); jnp.rot90(x,1,(1,2)); jnp.abs(x.astype('int16')-y).sum(); "
    "(x.astype('float32')*0.3+y.astype('float32')*0.7).astype('uint8'); jnp.flip(x,(1,2)); "
    "jnp.round(x.astype('float32')*1.5).clip(0,255).astype('uint8'); x.reshape(-1,{c})[::7]"
)
SEQUENCES = (
    "(x-x.mean(-1,keepdims=True))*lax.rsqrt(x.var(-1,keepdims=True)+1e-5)*y[0,0]+y[0,1]; "
    "x*lax.rsqrt(jnp.mean(x*x,-1,keepdims=True)+1e-6)*y[0,0]; "
    "jax.grad(lambda v: jnp.sum((v-v.mean(-1,keepdims=True))*lax.rsqrt(v.var(-1,keepdims=True)+"
    "1e-5)*y))(x); "
    "jax.grad(lambda v: jnp.sum(v*lax.rsqrt(jnp.mean(v*v,-1,keepdims=True)+1e-6)*y))(x); "
    "nn.softmax(jnp.einsum('btd,bsd->bts',x,y)/16,axis=-1)@x; "
    "nn.softmax(jnp.where(jnp.tril(jnp.ones(({h},{h}),bool)),jnp.einsum('btd,bsd->bts',x,y)/16,"
    "-1e9),axis=-1)@x; "
    "jax.nn.dot_product_attention(*[v.reshape({n},{h},4,-1) for v in (x,y,x)]); "
    "jax.grad(lambda v: jnp.sum(nn.softmax(jnp.einsum('btd,bsd->bts',v,y)/16,axis=-1)@x))(x); "
    "x.reshape({n},{h},4,-1).transpose(0,2,1,3); x.reshape({n},{h},4,-1).transpose(0,2,1,3)*2+1; "
    "jnp.concatenate([-x[...,{w}//2:],x[...,:{w}//2]],-1)*jnp.sin(y)+x*jnp.cos(y); "
    "lax.scan(lambda h,v:(jnp.tanh(h*0.9+v),h),x[:,0],jnp.swapaxes(x,0,1))[1]; "
    "lax.scan(lambda h,v:(jnp.tanh(h@y.reshape(-1)[:{w}*{w}].reshape({w},{w})*0.1+v),h),x[:,0],"
    "jnp.swapaxes(x,0,1))[0]; lax.scan(lambda h,v:(0.9*h+v,h),x[:,0],jnp.swapaxes(x,0,1))[1]; "
    "jax.grad(lambda w: jnp.sum(lax.scan(lambda h,v:(jnp.tanh(h*w+v),h),x[:,0],jnp.swapaxes(x,0,"
    "1))[1]))(y[0,0]); "
    "lax.associative_scan(lambda a,b:(a[0]*b[0],a[1]*b[0]+b[1]),(nn.sigmoid(x),y),axis=1)[1]; "
    "nn.gelu(x)*y; nn.silu(x)*y; nn.gelu(x,approximate=False); "
    "jax.grad(lambda v: jnp.sum(nn.gelu(v)*y))(x); nn.log_softmax(x); jnp.cumsum(x,1); "
    "-jnp.take_along_axis(nn.log_softmax(x),{classes}[...,None],-1).mean(); "
    "jax.grad(lambda v: -jnp.take_along_axis(nn.log_softmax(v),{classes}[...,None],-1).mean())("
    "x); jax.grad(lambda v: -jnp.sum(nn.one_hot({classes},{w})*nn.log_softmax(v)))(x); "
    "jnp.where(jax.random.bernoulli(jax.random.key(0),0.9,x.shape),x/0.9,0); x+y[:,:1]; "
    "jnp.where((jnp.arange({h})<{h}//2)[:,None],x,-1e9); "
    "jnp.sum(jnp.where(y>0,x,0),1)/jnp.sum(y>0,1); jnp.max(jnp.where(y>0,x,-jnp.inf),1); "
    "jnp.argmax(x,-1); (jnp.argmax(x,-1)=={classes}).mean(); lax.top_k(x,5)[0]; "
    "jnp.sort(x,-1)[...,::-1][...,:10]; x@y.reshape(-1)[:{w}*64].reshape({w},64); "
    "jnp.einsum('btd,btd->bt',x,y); x[:,1:]-x[:,:-1]; x[:,-1]; jnp.flip(x,1); jnp.roll(x,1,1); "
    "jnp.pad(x,((0,0),(2,0),(0,0)))[:,:-2]+x; jnp.abs(jnp.fft.rfft(x.astype('float32'),axis=1)); "
    "jnp.std(x,1); x/jnp.linalg.norm(x,axis=-1,keepdims=True); nn.softmax(x*0.1,1); "
    "jnp.clip(x,-1,1)*y; jnp.tanh(x)+y; nn.sigmoid(x)*jnp.tanh(y); nn.elu(x); nn.softplus(x); "
    "lax.conv_general_dilated(x,y.ravel()[:3*{w}*32].reshape(3,{w},32),(1,),'SAME',"
    "dimension_numbers=('NWC','WIO','NWC')); x.mean(1); nn.standardize(x); "
    "jnp.quantile(x.astype('float32'),0.5,axis=1)"
)
TABLES = (
    "x[{ids}]; jnp.take(x,{ids},axis=0); jax.grad(lambda v: jnp.sum(jnp.sin(v[{ids}])))(x); "
    "jax.ops.segment_sum(x,{labels},num_segments=64); "
    "jax.ops.segment_max(x,{labels},num_segments=64); "
    "jnp.zeros((64,x.shape[1]),x.dtype).at[{labels}].add(x); x.at[{ids}].add(1); "
    "x.at[{ids}].set(0); x.at[{ids}].multiply(2); x[jnp.argsort(y[:,0])]; x[{ids}].sum(0); "
    "x[{ids}]@y[:8].T; nn.one_hot({labels},64); nn.one_hot({labels},64).T@x.astype('float32'); "
    "x[::-1]*2; jnp.cov(x[:,:8].T); x-x.mean(0); (x-x.mean(0))/x.std(0); x.at[:,0].set(y[:,0]); "
    "jnp.concatenate([x,y],1); jnp.concatenate([x[:,1:],y[:,:1]],1); x[:,[0,2,1]]; x[:,::-1]; "
    "jnp.argsort(x,axis=0); jnp.argsort(x,axis=1); jnp.cumsum(x,axis=0); jnp.cumsum(x,axis=1); "
    "jnp.argmin(jnp.sum((x[:,None,:8]-y[None,:5,:8])**2,-1),1); x@y[:16].T; "
    "jax.grad(lambda v: jnp.mean((x.astype('float32')@v-y[:,0])**2))(jnp.ones(x.shape[1])); "
    "jnp.where(y[:,:1]>0,x,0); x*y[:,:1]; x*(y[:,0]>0)[:,None]; jnp.all(x>-3,axis=1); "
    "jnp.any(x>2,axis=0); jnp.sum(x>0,axis=1); jnp.sum(x>0,axis=0); "
    "lax.dynamic_slice(x,(7,0),(x.shape[0]//2,x.shape[1]))*2; "
    "lax.dynamic_update_slice(x,y[:9],(5,0)); jnp.tile(x,(1,2)); jnp.repeat(x,2,axis=0); "
    "jnp.repeat(x,2,axis=1); jnp.linalg.norm(x,axis=1); jnp.hypot(x[:,0],x[:,1]); "
    "x[:,0]*x[:,1]+x[:,2]; jnp.stack([x[:,0],x[:,1]],1); x.T.copy()+1; jnp.diff(x,axis=0); "
    "jnp.diff(x,axis=1); jnp.ptp(x,axis=1); jnp.median(x,axis=1); jnp.lexsort((x[:,0],y[:,0])); "
    "jnp.max(x,1)-jnp.min(x,1); "
    "jax.vmap(lambda v:jnp.convolve(v,jnp.ones(3),mode='same'))(x.astype('float32')); "
    "jax.vmap(lambda v,i:v[i])(x,jnp.arange(x.shape[0])%x.shape[1]); "
    "x[jnp.arange(x.shape[0]),0]; "
    "jax.vmap(lambda v,i:lax.dynamic_slice(v,(i,),(2,)))(x,jnp.arange(x.shape[0])%2); "
    "jnp.unique((x[:,0]*9).astype('int32'),size=100); jnp.triu(x[:100,:100]); jnp.fliplr(x); "
    "jax.grad(lambda v: jnp.sum(jnp.repeat(v,2,0)**2*y[:1]))(x); "
    "jax.grad(lambda v: jnp.sum(jnp.take_along_axis(v,jnp.argsort(y,1),1)*y))(x); "
    "jax.grad(lambda v: jnp.sum(jnp.pad(v,((1,2),(0,1)))**2))(x); "
    "jax.grad(lambda v: jnp.sum(jnp.concatenate([v,y],1)**2))(x); "
    "jax.grad(lambda v: jnp.sum(jnp.max(v,1)))(x); "
    "jax.grad(lambda v: jnp.sum(jnp.sort(v,1)*y))(x); "
    "jax.grad(lambda v: jnp.sum(jnp.tile(v,(1,2))**2))(x); "
    "jax.grad(lambda v: jnp.sum(v[:,::2]**2))(x); "
    "jax.grad(lambda v: jnp.sum(jnp.roll(v,1,0)*jnp.flip(y,1)))(x); "
    "jax.grad(lambda v: jnp.sum(jnp.clip(v,-1,1)*y))(x); "
    "jax.grad(lambda v: jnp.sum(jnp.where(y>0,v,0)**2))(x)"
)
SMALL_MATRICES = (
    "x@y; jnp.einsum('bij,bj->bi',x,y[...,0]); jnp.linalg.solve(x,y); jnp.linalg.inv(x); "
    "jnp.linalg.det(x); jnp.linalg.cholesky(x@x.mT+{w}*jnp.eye({w})); "
    "jnp.trace(x,axis1=1,axis2=2); x.mT@x; jax.vmap(jnp.outer)(x[...,0],y[...,0]); x@x@x; "
    "jnp.einsum('bij,bkj->bik',x,y); jnp.diagonal(x,axis1=1,axis2=2); x+jnp.eye({w}); x.mT+x; "
    "jnp.einsum('bii->b',x@y); x*y[...,:1]; x/jnp.linalg.norm(x,axis=(1,2),keepdims=True); "
    "jnp.tril(x); jnp.triu(x,1)*2; x-x.mT; jax.grad(lambda v: jnp.sum((v@y)**2))(x); "
    "jax.grad(lambda v: jnp.sum(jnp.linalg.inv(v)))(x); jnp.sum(x*y,axis=(1,2)); "
    "jnp.max(jnp.abs(x).sum(-1),-1); jnp.linalg.slogdet(x)[1]; "
    "jax.scipy.linalg.solve_triangular(x,y,lower=True); x[:,::-1,::-1]; x.at[:,0,0].add(1); "
    "jnp.einsum('bi,bij,bj->b',x[...,0],y,x[...,1]); jnp.linalg.matrix_power(x,3); "
    "jnp.linalg.qr(x)[1]; jnp.linalg.eigvalsh(x+x.mT); nn.softmax(x,-1)@y; "
    "x.reshape(x.shape[0],-1).sum(-1); jnp.einsum('bij,jk->bik',x,y[0]); "
    "jnp.einsum('ij,bjk->bik',x[0],y); x.mean(1); x.mean(2); jnp.kron(x[0],y[0]); "
    "jnp.roll(x,1,2); jnp.concatenate([x,y],1); jnp.concatenate([x,y],2); jnp.stack([x,y],1); "
    "jnp.swapaxes(x,1,2).reshape(x.shape[0],-1)*2; x[:,0]@y[0]; jnp.cumsum(x,2); "
    "jnp.cumsum(x,1); jnp.argmax(x,2); jnp.argmax(x,1); jnp.sort(x,2); jnp.sort(x,1); x[:,:,0]; "
    "x[:,0]"
)

PROGRAMS = (
    Kind(3, ((1_000_000,), (999_983,), (100_000,)), "float32", RUNS),
    Kind(2, ((1_000_000,), (100_000,)), "uint8 int8 int16 uint16 int32 uint32", INTEGERS),
    Kind(3, ((4, 112, 112, 16), (16, 56, 56, 20), (32, 28, 28, 32), (1, 512, 512, 3),
             (64, 28, 28, 8)), FLOATS, PICTURES),
    Kind(2, ((4, 256, 256, 3), (16, 64, 64, 4), (100, 100, 100, 1), (8, 224, 224, 3)),
         "uint8", BYTES),
    Kind(4, ((8, 128, 512), (32, 50, 256), (16, 100, 300), (64, 20, 64), (2, 1000, 128)),
         FLOATS, SEQUENCES),
    Kind(4, ((10_000, 100), (50_000, 16), (2_000, 512), (100_000, 5), (250_000, 3)),
         "float32 float32 float32 bfloat16", TABLES),
    Kind(2, ((111_111, 3, 3), (62_500, 4, 4), (15_625, 8, 8), (3_906, 16, 16), (27_777, 6, 6)),
         "float32", SMALL_MATRICES),
)  # fmt: skip


def places(shape: tuple[int, ...]) -> dict[str, str]:
    """What the texts name of one shape."""
    n, *_ = shape
    return {
        "ids": f"(jnp.abs(y.ravel()[:4096].astype('float32')*1000).astype('int32')%{n})",
        "labels": "(jnp.abs(y[:,0].astype('float32')*37).astype('int32')%64)",
        "classes": f"(jnp.abs(y[...,0].astype('float32')*999).astype('int32')%{shape[-1]})",
        **dict(zip("nhwc", map(str, shape), strict=False)),
    }
