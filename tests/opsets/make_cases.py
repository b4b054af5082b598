#!/usr/bin/env python3
"""Makes old_opsets.npz: one small model for each operator and version whose meaning differs from today's.

Needs numpy, onnx and onnxruntime. Expected values are numpy's, by the text of the old version in ONNX's history; where
that is long (recurrent nets, resizing), onnxruntime's on the same model, or on the same computation at opset 7, the
oldest it answers for. Keys of the archive: NAME|model (bytes), NAME|in|INPUT, NAME|out|OUTPUT.
"""
import os

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper as h, numpy_helper as nh

N = h.make_node
F = np.float32
rng = np.random.default_rng(0)
cases = []


def r(*shape):
    """Quarters: they pack well, and sums of them are exact."""
    return (rng.integers(-12, 12, shape) / 4 + 0.125).astype(F)


def value(name, element_type, shape=None):
    return h.make_tensor_value_info(name, element_type, shape)


vi = value
C = cases


def case(name, opset, nodes, feeds, want, inits=(), outs=None, otypes=None):
    cases.append((name, opset, nodes, feeds, want, inits, outs, otypes))


def bc(a,b,axis): # legacy
    if axis is None: axis=a.ndim-b.ndim
    return b.reshape(b.shape+(1,)*(a.ndim-axis-b.ndim))
A=r(2,3,4,5); B=r(3,4); S=r(5); Z=np.array(2.5,F)
for op,f in dict(Add=np.add,Sub=np.subtract,Mul=np.multiply,Div=np.divide).items():
    for v in (1,6):
        case(f'{op}-{v} axis1',v,[N(op,['a','b'],['y'],broadcast=1,axis=1)],dict(a=A,b=B),[f(A,bc(A,B,1))])
        case(f'{op}-{v} axis0',v,[N(op,['a','b'],['y'],broadcast=1,axis=0)],dict(a=A,b=r(2)),None)
        C[-1]=C[-1][:4]+([f(A,bc(A,C[-1][3]['b'],0))],)+C[-1][5:]
        case(f'{op}-{v} suffix',v,[N(op,['a','b'],['y'],broadcast=1)],dict(a=A,b=S),[f(A,S)])
        case(f'{op}-{v} neg axis',v,[N(op,['a','b'],['y'],broadcast=1,axis=-1)],dict(a=A,b=S),[f(A,S)])
        case(f'{op}-{v} scalar',v,[N(op,['a','b'],['y'],broadcast=1)],dict(a=A,b=Z),[f(A,Z)])
        case(f'{op}-{v} [1]',v,[N(op,['a','b'],['y'],broadcast=1)],dict(a=A,b=Z.reshape(1)),[f(A,Z)])
        case(f'{op}-{v} 1xx',v,[N(op,['a','b'],['y'],broadcast=1,axis=1)],dict(a=A,b=r(1,1)),None); C[-1]=C[-1][:4]+([f(A,bc(A,C[-1][3]['b'],1))],)+C[-1][5:]
        case(f'{op}-{v} plain',v,[N(op,['a','b'],['y'],**({'consumed_inputs':[0,0]} if v==1 else {}))],dict(a=A,b=A),[f(A,A)])
P=np.abs(A)+.5
case('Pow-1',1,[N('Pow',['a','b'],['y'],broadcast=1,axis=1)],dict(a=P,b=B),[np.power(P,bc(A,B,1))])
ab=A>0; bb=B>0
for op,f in dict(And=np.logical_and,Or=np.logical_or,Xor=np.logical_xor).items():
    case(f'{op}-1',1,[N(op,['a','b'],['y'],broadcast=1,axis=1)],dict(a=ab,b=bb),[f(ab,bc(ab,bb,1))])
ai=rng.integers(0,3,(2,3,4,5)).astype(np.int32); bi=rng.integers(0,3,(3,4)).astype(np.int32)
case('Equal-1',1,[N('Equal',['a','b'],['y'],broadcast=1,axis=1)],dict(a=ai,b=bi),[ai==bc(ai,bi,1)])
case('Less-1',1,[N('Less',['a','b'],['y'],broadcast=1,axis=1)],dict(a=A,b=B),[A<bc(A,B,1)])
case('Greater-1',1,[N('Greater',['a','b'],['y'],broadcast=1,axis=1)],dict(a=A,b=B),[A>bc(A,B,1)])
# PRelu
sl=r(3)
for v in (1,6):
    case(f'PRelu-{v} C',v,[N('PRelu',['a','s'],['y'])],dict(a=A,s=sl),[np.where(A<0,A*sl.reshape(3,1,1),A)])
    case(f'PRelu-{v} 1',v,[N('PRelu',['a','s'],['y'])],dict(a=A,s=Z.reshape(1)),[np.where(A<0,A*Z,A)])
# BN
sc,bi_,mu,va=r(3),r(3),r(3),np.abs(r(3))+.1
def bn(x,s,b,m,v,eps=1e-5): 
    q=lambda t:t.reshape((1,-1)+(1,)*(x.ndim-2))
    return (x-q(m))/np.sqrt(q(v)+eps)*q(s)+q(b)
case('BN-1',1,[N('BatchNormalization',list('asbmv'),['y'],is_test=1,consumed_inputs=[0,0,0,1,1])],dict(a=A,s=sc,b=bi_,m=mu,v=va),[bn(A,sc,bi_,mu,va)])
case('BN-1 eps',1,[N('BatchNormalization',list('asbmv'),['y'],is_test=1,epsilon=0.1,consumed_inputs=[0,0,0,1,1])],dict(a=A,s=sc,b=bi_,m=mu,v=va),[bn(A,sc,bi_,mu,va,.1)])
case('BN-6',6,[N('BatchNormalization',list('asbmv'),['y'],is_test=1)],dict(a=A,s=sc,b=bi_,m=mu,v=va),[bn(A,sc,bi_,mu,va)])
case('BN-6 momentum',6,[N('BatchNormalization',list('asbmv'),['y'],is_test=1,momentum=.5)],dict(a=A,s=sc,b=bi_,m=mu,v=va),[bn(A,sc,bi_,mu,va)])
case('BN-7',7,[N('BatchNormalization',list('asbmv'),['y'])],dict(a=A,s=sc,b=bi_,m=mu,v=va),[bn(A,sc,bi_,mu,va)])
case('BN-9',9,[N('BatchNormalization',list('asbmv'),['y'])],dict(a=A,s=sc,b=bi_,m=mu,v=va),[bn(A,sc,bi_,mu,va)])
case('BN-14',14,[N('BatchNormalization',list('asbmv'),['y'])],dict(a=A,s=sc,b=bi_,m=mu,v=va),[bn(A,sc,bi_,mu,va)])
pe=lambda:r(3,4,5)
s3,b3,m3,v3=pe(),pe(),pe(),np.abs(pe())+.1
case('BN-7 spatial0',7,[N('BatchNormalization',list('asbmv'),['y'],spatial=0)],dict(a=A,s=s3,b=b3,m=m3,v=v3),[(A-m3)/np.sqrt(v3+1e-5)*s3+b3])
case('BN-6 spatial0',6,[N('BatchNormalization',list('asbmv'),['y'],spatial=0,is_test=1)],dict(a=A,s=s3,b=b3,m=m3,v=v3),[(A-m3)/np.sqrt(v3+1e-5)*s3+b3])
# Cast
case('Cast-1 INT32',1,[N('Cast',['a'],['y'],to='INT32')],dict(a=A*3),[(A*3).astype(np.int32)])
case('Cast-1 FLOAT',1,[N('Cast',['a'],['y'],to='FLOAT')],dict(a=ai),[ai.astype(F)])
for nm,dt in dict(DOUBLE=np.float64,INT64=np.int64,UINT8=np.uint8,BOOL=np.bool_,FLOAT16=np.float16,INT8=np.int8,UINT16=np.uint16,INT16=np.int16,UINT32=np.uint32,UINT64=np.uint64).items():
    case(f'Cast-1 {nm}',1,[N('Cast',['a'],['y'],to=nm)],dict(a=ai),[ai.astype(dt)])
case('Cast-6',6,[N('Cast',['a'],['y'],to=6)],dict(a=A*3),[(A*3).astype(np.int32)])
# Clip
for v in (1,6):
    ci={'consumed_inputs':[0]} if v==1 else {}
    case(f'Clip-{v}',v,[N('Clip',['a'],['y'],min=-.5,max=.5,**ci)],dict(a=A),[np.clip(A,-.5,.5)])
    case(f'Clip-{v} min',v,[N('Clip',['a'],['y'],min=-.5,**ci)],dict(a=A),[np.maximum(A,F(-.5))])
    case(f'Clip-{v} max',v,[N('Clip',['a'],['y'],max=.5,**ci)],dict(a=A),[np.minimum(A,F(.5))])
    case(f'Clip-{v} none',v,[N('Clip',['a'],['y'],**ci)],dict(a=A),[A])
case('Concat-1 default axis',1,[N('Concat',['a','b'],['y'])],dict(a=A,b=A),[np.concatenate([A,A],1)])
case('Concat-1 axis',1,[N('Concat',['a','b'],['y'],axis=2)],dict(a=A,b=A),[np.concatenate([A,A],2)])
case('Concat-4',4,[N('Concat',['a','b'],['y'],axis=3)],dict(a=A,b=A),[np.concatenate([A,A],3)])
# Dropout
case('Dropout-1 test',1,[N('Dropout',['a'],['y'],is_test=1,ratio=.4,consumed_inputs=[0])],dict(a=A),[A])
case('Dropout-6 test',6,[N('Dropout',['a'],['y'],is_test=1,ratio=.4)],dict(a=A),[A])
case('Dropout-7',7,[N('Dropout',['a'],['y'],ratio=.4)],dict(a=A),[A])
case('Dropout-10 mask',10,[N('Dropout',['a'],['y','m'],ratio=.4)],dict(a=A),[A,np.ones_like(A,bool)],outs=['y','m'],otypes=[1,9])
case('Dropout-7 mask',7,[N('Dropout',['a'],['y','m'],ratio=.4)],dict(a=A),[A,np.ones_like(A)],outs=['y','m'],otypes=[1,1])
# Gemm
ga,gb,gc=r(3,4),r(4,5),r(5)
for v in (1,6):
    case(f'Gemm-{v} bc',v,[N('Gemm',['a','b','c'],['y'],broadcast=1,alpha=.5,beta=2.)],dict(a=ga,b=gb,c=gc),[.5*ga@gb+2*gc])
    case(f'Gemm-{v} full',v,[N('Gemm',['a','b','c'],['y'])],dict(a=ga,b=gb,c=r(3,5)),None); C[-1]=C[-1][:4]+([ga@gb+C[-1][3]['c']],)+C[-1][5:]
    case(f'Gemm-{v} trans',v,[N('Gemm',['a','b','c'],['y'],transA=1,transB=1,broadcast=1)],dict(a=ga.T.copy(),b=gb.T.copy(),c=gc),[ga@gb+gc])
# Unary with consumed_inputs
for op,f,kw in [('Abs',np.abs,{}),('Ceil',np.ceil,{}),('Exp',np.exp,{}),('Floor',np.floor,{}),('Neg',np.negative,{}),('Relu',lambda x:np.maximum(x,0),{}),('Sigmoid',lambda x:1/(1+np.exp(-x)),{}),('Tanh',np.tanh,{}),('Reciprocal',lambda x:1/x,{}),
    ('Elu',lambda x:np.where(x<0,1.0*(np.exp(x)-1),x),{}),('LeakyRelu',lambda x:np.where(x<0,.01*x,x),{}),('HardSigmoid',lambda x:np.clip(.2*x+.5,0,1),{}),
    ('Selu',lambda x:np.where(x>0,1.0507*x,1.0507*(1.6732*np.exp(x)-1.6732)),{})]:
    case(f'{op}-1 consumed',1,[N(op,['a'],['y'],consumed_inputs=[0],**kw)],dict(a=A),[f(A).astype(F)])
    case(f'{op}-1 plain',1,[N(op,['a'],['y'],**kw)],dict(a=A),[f(A).astype(F)])
case('Elu-1 a',1,[N('Elu',['a'],['y'],alpha=2.,consumed_inputs=[0])],dict(a=A),[np.where(A<0,2*(np.exp(A)-1),A)])
case('Selu-6',6,[N('Selu',['a'],['y'])],dict(a=A),[np.where(A>0,1.0507009873554805*A,1.0507009873554805*1.6732632423543772*(np.exp(A)-1))])
case('Log-1',1,[N('Log',['a'],['y'],consumed_inputs=[0])],dict(a=P),[np.log(P)])
case('Sqrt-1',1,[N('Sqrt',['a'],['y'],consumed_inputs=[0])],dict(a=P),[np.sqrt(P)])
case('Not-1',1,[N('Not',['a'],['y'])],dict(a=ab),[~ab])
case('Softplus-1',1,[N('Softplus',['a'],['y'])],dict(a=A),[np.log1p(np.exp(A))])
case('Softsign-1',1,[N('Softsign',['a'],['y'])],dict(a=A),[A/(1+np.abs(A))])
for v in (1,6):
  for op,f in dict(Max=lambda x:np.maximum.reduce(x),Min=lambda x:np.minimum.reduce(x),Sum=sum,Mean=lambda x:sum(x)/len(x)).items():
    xs=[r(2,3) for _ in range(3)]
    case(f'{op}-{v}',v,[N(op,['p','q','s'],['y'],**({'consumed_inputs':[0,0,0]} if v==1 else {}))],dict(p=xs[0],q=xs[1],s=xs[2]),[f(xs)])
# softmax family
def sm(x,axis): 
    y=x.reshape(int(np.prod(x.shape[:axis])) if axis else 1,-1); e=np.exp(y-y.max(1,keepdims=True)); return (e/e.sum(1,keepdims=True)).reshape(x.shape)
def hm(x,axis):
    y=x.reshape(int(np.prod(x.shape[:axis])) if axis else 1,-1); o=np.zeros_like(y); o[np.arange(len(y)),y.argmax(1)]=1; return o.reshape(x.shape)
for v in (1,11):
    for ax in (None,0,1,2,3)+((-1,-2) if v==11 else ()):
        kw={} if ax is None else {'axis':ax}; a=1 if ax is None else ax%4
        case(f'Softmax-{v} {ax}',v,[N('Softmax',['a'],['y'],**kw)],dict(a=A),[sm(A,a)])
        case(f'LogSoftmax-{v} {ax}',v,[N('LogSoftmax',['a'],['y'],**kw)],dict(a=A),[np.log(sm(A,a))])
        case(f'Hardmax-{v} {ax}',v,[N('Hardmax',['a'],['y'],**kw)],dict(a=A),[hm(A,a)])
case('Softmax-13',13,[N('Softmax',['a'],['y'])],dict(a=A),[np.exp(A)/np.exp(A).sum(-1,keepdims=True)])
# Instance norm
def inorm(x,s,b,eps=1e-5):
    m=x.mean((2,3),keepdims=True); v=x.var((2,3),keepdims=True); return (x-m)/np.sqrt(v+eps)*s.reshape(1,-1,1,1)+b.reshape(1,-1,1,1)
case('InstanceNorm-1',1,[N('InstanceNormalization',['a','s','b'],['y'],consumed_inputs=[0,0,0])],dict(a=A,s=sc,b=bi_),[inorm(A,sc,bi_)])
# pools
def pool(x,k,f):
    n,c,hh,w=x.shape; o=np.zeros((n,c,hh-k+1,w-k+1),F)
    for i in range(hh-k+1):
        for j in range(w-k+1): o[:,:,i,j]=f(x[:,:,i:i+k,j:j+k].reshape(n,c,-1))
    return o
case('MaxPool-1',1,[N('MaxPool',['a'],['y'],kernel_shape=[2,2])],dict(a=A),[pool(A,2,lambda t:t.max(-1))])
case('AveragePool-1',1,[N('AveragePool',['a'],['y'],kernel_shape=[2,2])],dict(a=A),[pool(A,2,lambda t:t.mean(-1))])
Ap=np.pad(A,((0,0),(0,0),(1,1),(1,1))); ones=np.pad(np.ones_like(A),((0,0),(0,0),(1,1),(1,1)))
case('AveragePool-1 pads',1,[N('AveragePool',['a'],['y'],kernel_shape=[2,2],pads=[1,1,1,1])],dict(a=A),[pool(Ap,2,lambda t:t.sum(-1))/pool(ones,2,lambda t:t.sum(-1))])
case('LpPool-1',1,[N('LpPool',['a'],['y'],kernel_shape=[2,2],p=2.)],dict(a=A),[pool(A,2,lambda t:np.sqrt((t**2).sum(-1)))])
case('LpPool-1 default',1,[N('LpPool',['a'],['y'],kernel_shape=[2,2])],dict(a=A),[pool(A,2,lambda t:np.sqrt((t**2).sum(-1)))])
case('LpPool-1 p1.5',1,[N('LpPool',['a'],['y'],kernel_shape=[2,2],p=1.5)],dict(a=A),[pool(A,2,lambda t:((np.abs(t)**1.5).sum(-1))**(1/1.5))])
case('LpPool-2',2,[N('LpPool',['a'],['y'],kernel_shape=[2,2],p=1)],dict(a=A),[pool(A,2,lambda t:np.abs(t).sum(-1))])
case('GlobalLpPool-1',1,[N('GlobalLpPool',['a'],['y'],p=2.)],dict(a=A),[np.sqrt((A**2).sum((2,3),keepdims=True))])
case('GlobalLpPool-1 p1.5',1,[N('GlobalLpPool',['a'],['y'],p=1.5)],dict(a=A),[((np.abs(A)**1.5).sum((2,3),keepdims=True))**(1/1.5)])
case('GlobalAveragePool-1',1,[N('GlobalAveragePool',['a'],['y'])],dict(a=A),[A.mean((2,3),keepdims=True)])
case('GlobalMaxPool-1',1,[N('GlobalMaxPool',['a'],['y'])],dict(a=A),[A.max((2,3),keepdims=True)])
case('MaxPool-8 idx',8,[N('MaxPool',['a'],['y','i'],kernel_shape=[4,5])],dict(a=A),None,outs=['y','i'],otypes=[1,7])
# Pad
case('Pad-1',1,[N('Pad',['a'],['y'],paddings=[0,0,1,2,0,1,0,3],value=1.5)],dict(a=A),[np.pad(A,((0,0),(0,1),(1,0),(2,3)),constant_values=1.5)])
case('Pad-1 edge',1,[N('Pad',['a'],['y'],paddings=[0,0,1,2,0,1,0,3],mode='edge')],dict(a=A),[np.pad(A,((0,0),(0,1),(1,0),(2,3)),mode='edge')])
case('Pad-2',2,[N('Pad',['a'],['y'],pads=[0,0,1,2,0,1,0,3],value=1.5)],dict(a=A),[np.pad(A,((0,0),(0,1),(1,0),(2,3)),constant_values=1.5)])
case('Pad-2 reflect',2,[N('Pad',['a'],['y'],pads=[0,0,1,2,0,1,0,3],mode='reflect')],dict(a=A),[np.pad(A,((0,0),(0,1),(1,0),(2,3)),mode='reflect')])
case('Pad-2 neg',2,[N('Pad',['a'],['y'],pads=[0,0,-1,0,0,0,0,-2])],dict(a=A),[A[:,:,1:,:-2]])
# Reduce
for op,f in dict(ReduceSum=np.sum,ReduceMean=np.mean,ReduceMax=np.max,ReduceMin=np.min,ReduceProd=np.prod,ReduceL1=lambda x,**k:np.abs(x).sum(**k),ReduceL2=lambda x,**k:np.sqrt((x**2).sum(**k)),ReduceSumSquare=lambda x,**k:(x**2).sum(**k),ReduceLogSumExp=lambda x,**k:np.log(np.exp(x).sum(**k)),ReduceLogSum=lambda x,**k:np.log(np.abs(x).sum(**k))).items():
    X=np.abs(A) if op=='ReduceLogSum' else A
    case(f'{op}-1',1,[N(op,['a'],['y'],axes=[1,3])],dict(a=X),[f(X,axis=(1,3),keepdims=True)])
    case(f'{op}-1 nokeep',1,[N(op,['a'],['y'],axes=[2],keepdims=0)],dict(a=X),[f(X,axis=2)])
    case(f'{op}-1 all',1,[N(op,['a'],['y'])],dict(a=X),[np.asarray(f(X)).reshape(1,1,1,1)])
    case(f'{op}-11 neg',11,[N(op,['a'],['y'],axes=[-1])],dict(a=X),[f(X,axis=(3,),keepdims=True)])
for op,f in dict(ArgMax=np.argmax,ArgMin=np.argmin).items():
    case(f'{op}-1',1,[N(op,['a'],['y'],axis=2)],dict(a=A),[np.expand_dims(f(A,2),2)],otypes=[7])
    case(f'{op}-1 def',1,[N(op,['a'],['y'],keepdims=0)],dict(a=A),[f(A,0)],otypes=[7])
# Reshape
case('Reshape-1',1,[N('Reshape',['a'],['y'],shape=[0,-1,5],consumed_inputs=[0])],dict(a=A),[A.reshape(2,-1,5)])
case('Reshape-1 plain',1,[N('Reshape',['a'],['y'],shape=[6,20])],dict(a=A),[A.reshape(6,20)])
case('Reshape-5',5,[N('Reshape',['a','s'],['y'])],dict(a=A),[A.reshape(6,20)],inits=[nh.from_array(np.array([6,20]),'s')])
case('Flatten-1',1,[N('Flatten',['a'],['y'],axis=2)],dict(a=A),[A.reshape(6,20)])
# Slice Split Squeeze
case('Slice-1',1,[N('Slice',['a'],['y'],axes=[1,3],starts=[1,-3],ends=[3,1000])],dict(a=A),[A[:,1:3,:,-3:]])
case('Slice-1 noaxes',1,[N('Slice',['a'],['y'],starts=[0,1],ends=[1,-1])],dict(a=A),[A[0:1,1:-1]])
case('Split-1 attr',1,[N('Split',['a'],['y','z'],axis=3,split=[2,3])],dict(a=A),[A[...,:2],A[...,2:]],outs=['y','z'],otypes=[1,1])
case('Split-1 even',1,[N('Split',['a'],['y','z'])],dict(a=A),[A[:1],A[1:]],outs=['y','z'],otypes=[1,1])
case('Split-1 input',1,[N('Split',['a','s'],['y','z'],axis=3)],dict(a=A),[A[...,:2],A[...,2:]],inits=[nh.from_array(np.array([2,3],F),'s')],outs=['y','z'],otypes=[1,1])
case('Split-2',2,[N('Split',['a'],['y','z'],axis=3,split=[2,3])],dict(a=A),[A[...,:2],A[...,2:]],outs=['y','z'],otypes=[1,1])
case('Split-11',11,[N('Split',['a'],['y','z'],axis=-2)],dict(a=A),[A[:,:,:2],A[:,:,2:]],outs=['y','z'],otypes=[1,1])
case('Squeeze-1',1,[N('Squeeze',['a'],['y'],axes=[0])],dict(a=A[:1]),[A[0]])
case('Squeeze-1 all',1,[N('Squeeze',['a'],['y'])],dict(a=A[:1]),[A[0]])
case('Unsqueeze-1',1,[N('Unsqueeze',['a'],['y'],axes=[0,3])],dict(a=B),[B.reshape(1,3,4,1)])
case('Transpose-1',1,[N('Transpose',['a'],['y'])],dict(a=A),[A.T])
case('Tile-1',1,[N('Tile',['a','t','x'],['y'])],dict(a=A),[np.tile(A,(1,1,3,1))],inits=[nh.from_array(np.array(3,F),'t'),nh.from_array(np.array(2,F),'x')])
case('Tile-1 [1]',1,[N('Tile',['a','t','x'],['y'])],dict(a=A),[np.tile(A,(1,1,3,1))],inits=[nh.from_array(np.array([3],F),'t'),nh.from_array(np.array([2],F),'x')])
case('Tile-6',6,[N('Tile',['a','t'],['y'])],dict(a=A),[np.tile(A,(1,2,1,3))],inits=[nh.from_array(np.array([1,2,1,3]),'t')])
top=np.sort(A,-1)[...,::-1]; idx=np.argsort(-A,-1,kind='stable')
case('TopK-1',1,[N('TopK',['a'],['y','i'],k=2)],dict(a=A),[top[...,:2],idx[...,:2]],outs=['y','i'],otypes=[1,7])
case('TopK-10',10,[N('TopK',['a','k'],['y','i'])],dict(a=A),[top[...,:2],idx[...,:2]],inits=[nh.from_array(np.array([2]),'k')],outs=['y','i'],otypes=[1,7])
case('Upsample-1',1,[N('Upsample',['a'],['y'],width_scale=3.,height_scale=2.,mode='nearest')],dict(a=A),[A.repeat(2,2).repeat(3,3)])
case('Upsample-7',7,[N('Upsample',['a'],['y'],scales=[1.,1.,2.,3.])],dict(a=A),[A.repeat(2,2).repeat(3,3)])
case('Upsample-9',9,[N('Upsample',['a','s'],['y'])],dict(a=A),[A.repeat(2,2).repeat(3,3)],inits=[nh.from_array(np.array([1,1,2,3],F),'s')])
case('Upsample-7 bilinear',7,[N('Upsample',['a'],['y'],scales=[1.,1.,2.,2.],mode='linear')],dict(a=A),None)
case('Resize-10 linear',10,[N('Resize',['a','s'],['y'],mode='linear')],dict(a=A),None,inits=[nh.from_array(np.array([1,1,2,3],F),'s')])
case('Resize-10 down',10,[N('Resize',['a','s'],['y'],mode='nearest')],dict(a=A),None,inits=[nh.from_array(np.array([1,1,.6,.6],F),'s')])
case('Resize-11',11,[N('Resize',['a','r','s'],['y'],mode='linear')],dict(a=A),None,inits=[nh.from_array(np.array([],F),'r'),nh.from_array(np.array([1,1,2,3],F),'s')])
case('Scatter-9',9,[N('Scatter',['a','i','u'],['y'],axis=1)],dict(a=np.zeros((2,5),F),i=np.array([[0,2],[1,3]]),u=np.array([[1,2],[3,4]],F)),[np.array([[1,0,2,0,0],[0,3,0,4,0]],F)])
case('DepthToSpace-1',1,[N('DepthToSpace',['a'],['y'],blocksize=2)],dict(a=r(1,8,2,3)),None)
case('SpaceToDepth-1',1,[N('SpaceToDepth',['a'],['y'],blocksize=2)],dict(a=r(1,2,4,6)),None)
case('LRN-1',1,[N('LRN',['a'],['y'],size=3)],dict(a=A),None)
case('MeanVarianceNormalization-9',9,[N('MeanVarianceNormalization',['a'],['y'])],dict(a=A),None)
W=r(2,3,2,2)
case('Conv-1',1,[N('Conv',['a','w'],['y'])],dict(a=A,w=W),None)
case('ConvTranspose-1',1,[N('ConvTranspose',['a','w'],['y'],strides=[2,2],output_shape=[8,10],kernel_shape=[2,2])],dict(a=A,w=r(3,2,2,2)),None)
case('ConvTranspose-1 same',1,[N('ConvTranspose',['a','w'],['y'],strides=[2,2],auto_pad='SAME_UPPER',kernel_shape=[3,3])],dict(a=A,w=r(3,2,3,3)),None)
case('MatMul-1',1,[N('MatMul',['a','b'],['y'])],dict(a=ga,b=gb),[ga@gb])
case('Gather-1',1,[N('Gather',['a','i'],['y'],axis=1)],dict(a=A,i=np.array([2,0])),[A[:,[2,0]]])
case('Identity-1',1,[N('Identity',['a'],['y'])],dict(a=A),[A])
case('Shape-1',1,[N('Shape',['a'],['y'])],dict(a=A),[np.array(A.shape)],otypes=[7])
case('Size-1',1,[N('Size',['a'],['y'])],dict(a=A),[np.array(A.size)],otypes=[7])
case('LpNormalization-1',1,[N('LpNormalization',['a'],['y'])],dict(a=A),[A/np.sqrt((A**2).sum(-1,keepdims=True))])
case('Constant-1',1,[N('Constant',[],['k'],value=nh.from_array(A)),N('Add',['a','k'],['y'])],dict(a=A),[A+A])
# RNNs: expected from ORT at opset 7
X=r(3,2,4)
for op,g in dict(RNN=1,GRU=3,LSTM=4).items():
    w,rr,b=r(1,g*5,4),r(1,g*5,5),r(1,2*g*5)
    for v in {'RNN':[1],'GRU':[1,3],'LSTM':[1]}[op]:
        case(f'{op}-{v} seq',v,[N(op,['a','w','r','b'],['y','yh'],hidden_size=5,output_sequence=1)],dict(a=X,w=w,r=rr,b=b),'ort7',outs=['y','yh'],otypes=[1,1])
        case(f'{op}-{v} noseq',v,[N(op,['a','w','r','b'],['','yh'],hidden_size=5)],dict(a=X,w=w,r=rr,b=b),'ort7',outs=['yh'],otypes=[1])
case('Hardmax ties-1',1,[N('Hardmax',['a'],['y'])],dict(a=np.zeros((2,3,4),F)),[hm(np.zeros((2,3,4),F),1)])
case('GridSample-16 bilinear',16,[N('GridSample',['a','g'],['y'],mode='bilinear')],dict(a=A,g=r(2,3,3,2)*.5),None)
case('GridSample-16 bicubic',16,[N('GridSample',['a','g'],['y'],mode='bicubic')],dict(a=A,g=r(2,3,3,2)*.5),None)
roi=np.array([[0,0,3,3],[1,1,4,3]],F)
for v in (10,16):
  for m in ('avg','max'):
    case(f'RoiAlign-{v} {m}',v,[N('RoiAlign',['a','r','b'],['y'],output_height=2,output_width=2,mode=m,sampling_ratio=2)],dict(a=A,r=roi,b=np.array([0,1])),None)
case('DFT-17',17,[N('DFT',['a'],['y'])],dict(a=r(2,4,5,1)),None)
case('DFT-17 axis',17,[N('DFT',['a'],['y'],axis=2,onesided=1)],dict(a=r(2,4,5,1)),None)
case('GroupNorm-18',18,[N('GroupNormalization',['a','s','b'],['y'],num_groups=2)],dict(a=r(2,4,3),s=r(2),b=r(2)),None)
case('Pad-11',11,[N('Pad',['a','p','v'],['y'])],dict(a=A),[np.pad(A,((0,0),(0,1),(1,0),(2,3)),constant_values=1.5)],inits=[nh.from_array(np.array([0,0,1,2,0,1,0,3]),'p'),nh.from_array(np.array(1.5,F),'v')])
case('BitShift-11',11,[N('BitShift',['a','b'],['y'],direction='LEFT')],dict(a=np.array([1,2],np.uint8),b=np.array([3,1],np.uint8)),[np.array([8,4],np.uint8)])
case('QuantizeLinear-10',10,[N('QuantizeLinear',['a','s','z'],['y'])],dict(a=A,s=np.array(.1,F),z=np.array(100,np.uint8)),None,otypes=[2])
# BN training results old
# Scan-8
body=h.make_graph([N('Add',['s','x'],['so']),N('Identity',['so'],['o'])],'b',[vi('s',1,[2]),vi('x',1,[2])],[vi('so',1,[2]),vi('o',1,[2])])
s0=np.zeros((1,2),F); xs=np.arange(6,dtype=F).reshape(1,3,2)
case('Scan-8',8,[N('Scan',['','s0','xs'],['y','z'],num_scan_inputs=1,body=body)],dict(s0=s0,xs=xs),[xs.sum(1),np.cumsum(xs,1)],outs=['y','z'],otypes=[1,1])
case('Scan-8 batch2',8,[N('Scan',['','s0','xs'],['y','z'],num_scan_inputs=1,body=body)],dict(s0=np.zeros((2,2),F),xs=r(2,3,2)),None,outs=['y','z'],otypes=[1,1]); C[-1]=C[-1][:4]+([C[-1][3]['xs'].sum(1),np.cumsum(C[-1][3]['xs'],1)],)+C[-1][5:]
lengths = np.array([3, 1], np.int64)
two = r(2, 3, 2)
mask = (np.arange(3)[None, :] < lengths[:, None])[..., None]
case('Scan-8 lengths', 8, [N('Scan', ['len', 's0', 'xs'], ['y', 'z'], num_scan_inputs=1, body=body)],
     dict(len=lengths, s0=np.zeros((2, 2), F), xs=two), [(two * mask).sum(1), np.cumsum(two, 1) * mask],
     outs=['y', 'z'], otypes=[1, 1])
case('Scan-8 backwards', 8, [N('Scan', ['', 's0', 'xs'], ['y', 'z'], num_scan_inputs=1, directions=[1], body=body)],
     dict(s0=np.zeros((2, 2), F), xs=two), [two.sum(1), np.cumsum(two[:, ::-1], 1)], outs=['y', 'z'], otypes=[1, 1])
case('Upsample-1 bilinear',1,[N('Upsample',['a'],['y'],width_scale=2.,height_scale=2.,mode='bilinear')],dict(a=A),'up7')


def model_of(one, opset=None, nodes=None):
    name, version, own, feeds, want, inits, outs, otypes = one
    outs = outs or ['y']
    types = []
    for k in range(len(outs)):
        given = otypes[k] if otypes else None
        if given is None and isinstance(want, list):
            given = h.np_dtype_to_tensor_dtype(np.asarray(want[k]).dtype)
            if given == 11 and 'DOUBLE' not in name:
                given = 1
        types.append(given or 1)
    inputs = [value(k, h.np_dtype_to_tensor_dtype(a.dtype), list(a.shape)) for k, a in feeds.items()]
    old = version < 9
    if old:  # before IR version 4 an initializer is an input too
        inputs += [value(t.name, t.data_type, list(t.dims)) for t in inits]
    graph = h.make_graph(list(nodes or own), 'g', inputs, [value(o, t) for o, t in zip(outs, types)],
                         initializer=list(inits))
    return h.make_model(graph, opset_imports=[h.make_opsetid('', opset or version)], ir_version=3 if old else 8)


def run(model, feeds):
    return ort.InferenceSession(model.SerializeToString(), providers=['CPUExecutionProvider']).run(None, feeds)


def expected(one, model):
    name, version, nodes, feeds, want, inits, outs, otypes = one
    if want == 'ort7':
        newer = [onnx.NodeProto.FromString(n.SerializeToString()) for n in nodes]
        for n in newer:
            for a in list(n.attribute):
                if a.name in ('output_sequence', 'consumed_inputs'):
                    n.attribute.remove(a)
        return run(model_of(one, 7, newer), feeds)
    if want == 'up7':
        return run(model_of(one, 7, [N('Upsample', ['a'], ['y'], scales=[1., 1., 2., 2.], mode='linear')]), feeds)
    if want is None:
        return run(model, feeds)
    return want


def main():
    ort.set_default_logger_severity(4)
    arrays = {}
    for one in cases:
        name, feeds, outs = one[0], one[3], one[6] or ['y']
        model = model_of(one)
        arrays[f'{name}|model'] = np.frombuffer(model.SerializeToString(), np.uint8)
        for k, a in feeds.items():
            arrays[f'{name}|in|{k}'] = a
        for k, a, declared in zip(outs, expected(one, model), model.graph.output):
            dtype = h.tensor_dtype_to_np_dtype(declared.type.tensor_type.elem_type)
            arrays[f'{name}|out|{k}'] = np.asarray(a).astype(dtype)
    np.savez_compressed(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'old_opsets.npz'), **arrays)
    print(len(cases), 'cases')


if __name__ == '__main__':
    main()
