"""scipy.fft, signal, ndimage, interpolate, integrate, cluster and spatial against SciPy."""

from __future__ import annotations

import importlib
import warnings

import numpy as np
import pytest
import scipy.cluster.vq
import scipy.fft
import scipy.interpolate
import scipy.ndimage
import scipy.signal
from scipy.spatial.transform import Rotation as Theirs, Slerp as TheirSlerp
from versions import needs

import numjet as nj
import numjet.numpy as jnp
import numjet.scipy as nsp

RNG = np.random.default_rng(5)


def close(got, want, rtol=2e-5, atol=2e-5) -> None:
    np.testing.assert_allclose(np.asarray(got), want, rtol=rtol, atol=atol)


# ------------------------------------------------------------------ cosine transforms
@pytest.mark.parametrize("name", ["dct", "idct"])
def test_cosine_transform(name: str) -> None:
    ours, theirs = getattr(nsp.fft, name), getattr(scipy.fft, name)
    for n in (1, 2, 3, 8, 9):
        x = RNG.standard_normal((3, n)).astype(np.float32)
        for norm in (None, "ortho"):
            close(ours(x, norm=norm), theirs(x, norm=norm))
            close(nj.jit(lambda x, norm=norm: ours(x, norm=norm))(x), theirs(x, norm=norm))
            close(ours(x, n=5, norm=norm), theirs(x, n=5, norm=norm))
        close(ours(x + 1j, axis=0), theirs(x, axis=0) + 1j * theirs(np.ones_like(x), axis=0))
    x = RNG.standard_normal((3, 4, 5)).astype(np.float32)
    close(
        getattr(nsp.fft, name + "n")(x, s=(2, 6), axes=(0, 2)),
        getattr(scipy.fft, name + "n")(x, s=(2, 6), axes=(0, 2)),
    )
    close(getattr(nsp.fft, name + "n")(x), getattr(scipy.fft, name + "n")(x), atol=2e-4)
    with pytest.raises(NotImplementedError):
        ours(x, type=3)
    nj.test_util.check_grads(ours, (x[0],), order=1, modes=["fwd", "rev"], atol=1e-2, rtol=1e-2)


# ------------------------------------------------------------------ signal
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolutions(mode: str) -> None:
    for shapes in (((7,), (3,)), ((3,), (7,)), ((4, 5), (2, 3)), ((3, 4, 2), (2, 2, 2))):
        x, y = (RNG.standard_normal(s).astype(np.float32) for s in shapes)
        for a, b in ((x, y), (x + 1j * x[::-1], y), (x, y * (1 + 2j))):
            for method in ("direct", "fft"):
                for name in ("convolve", "correlate"):
                    got = getattr(nsp.signal, name)(a, b, mode, method=method)
                    close(got, getattr(scipy.signal, name)(a, b, mode, method=method))
        if x.ndim == 2:
            for name in ("convolve2d", "correlate2d"):
                for a, b in ((x, y), (x + 1j * x[::-1], y * (1 - 2j)), (y * 1j, x), (x[:2, :3], y)):
                    got = getattr(nsp.signal, name)(a, b, mode)
                    close(got, getattr(scipy.signal, name)(a, b, mode))
    x, y = (RNG.standard_normal(s) for s in ((4, 6), (4, 3)))
    close(nsp.signal.fftconvolve(x, y, mode, axes=1), scipy.signal.fftconvolve(x, y, mode, axes=1))


def test_detrend() -> None:
    x = RNG.standard_normal((4, 9)).astype(np.float32)
    for args in ({}, {"type": "constant"}, {"axis": 0}, {"bp": [2, 5]}, {"bp": 4}):
        close(nsp.signal.detrend(x, **args), scipy.signal.detrend(x, **args))
    with pytest.raises(ValueError, match="Breakpoints"):
        nsp.signal.detrend(x, bp=20)


_SPECTRA: list[dict] = [
    {"nperseg": 8},
    {"nperseg": 8, "noverlap": 3, "nfft": 20},
    {"nperseg": 9, "window": ("tukey", 0.3), "fs": 4.0, "detrend": "linear"},
    {"window": np.linspace(0.1, 1, 12), "detrend": False},
    {"nperseg": 8, "return_onesided": False},
]


@pytest.mark.parametrize("args", _SPECTRA)
def test_spectra(args: dict) -> None:
    x = RNG.standard_normal((2, 50)).astype(np.float32)
    y = RNG.standard_normal((2, 43)).astype(np.float32)
    own = {"nperseg": 12} if "window" in args and "nperseg" not in args else {}
    for series in (x, x + 1j * x[::-1]):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for more in ({}, {"boundary": "odd"}, {"boundary": None, "padded": False}):
                got = nsp.signal.stft(series, **own, **args, **more)
                for a, b in zip(got, scipy.signal.stft(series, **own, **args, **more), strict=True):
                    close(a, b)
            for more in ({}, {"average": "median"}, {"scaling": "spectrum", "axis": -1}):
                got = nsp.signal.welch(series, **args, **more)
                for a, b in zip(got, scipy.signal.welch(series, **args, **more), strict=True):
                    close(a, b)
                got = nsp.signal.csd(series, y, **args, **more)
                for a, b in zip(got, scipy.signal.csd(series, y, **args, **more), strict=True):
                    close(a, b)


def test_frequencies_of_half_precision_are_those_of_the_transforms() -> None:
    x = jnp.linspace(0, 5, 40, dtype=jnp.bfloat16)
    for name in ("stft", "welch"):
        found = getattr(nsp.signal, name)(x, 0.3, nperseg=16, return_onesided=False)
        assert {str(v.dtype) for v in found} <= {"float32", "complex64"}
        close(found[0], np.fft.fftfreq(16, 1 / 0.3).astype(np.float32))


def test_spectra_of_nothing_have_its_shape() -> None:
    for shape, axis in (((0,), -1), ((2, 0), -1), ((0, 3), 0)):
        x = jnp.zeros(shape)
        for found in (nsp.signal.stft(x, axis=axis), nsp.signal.welch(x, axis=axis),
                      nsp.signal.csd(x, x + 1, axis=axis)):
            assert {v.shape for v in found} == {shape}
        assert nsp.signal.csd(x, x + 1, axis=axis)[1].dtype == "complex64"
        assert nsp.signal.welch(x, axis=axis)[1].dtype == "float32"


def test_inverse_of_stft() -> None:
    x = RNG.standard_normal((3, 40)).astype(np.float32)
    for args in ({"nperseg": 8}, {"nperseg": 8, "noverlap": 6, "nfft": 12}, {"nperseg": 9}):
        z = scipy.signal.stft(x, **args)[2].astype(np.complex64)
        got = nj.jit(lambda z, args=args: nsp.signal.istft(z, **args))(z)
        want = scipy.signal.istft(z, **args)
        close(got[1], want[1])
        close(got[1][:, :40], x)
    z = np.moveaxis(scipy.signal.stft(x, nperseg=8)[2], 1, 0)
    close(nsp.signal.istft(z, freq_axis=0)[1], scipy.signal.istft(z, freq_axis=0)[1])
    grad = nj.grad(lambda x: jnp.abs(nsp.signal.stft(x, nperseg=8)[2]).sum())(x[0])
    assert np.isfinite(grad).all()


# ------------------------------------------------------------------ interpolation
def test_map_coordinates() -> None:
    x = RNG.standard_normal((5, 6)).astype(np.float32)
    at = RNG.uniform(-9, 13, (2, 40)).astype(np.float32)
    names = {"constant": "grid-constant", "wrap": "grid-wrap"}
    for mode in ("constant", "nearest", "wrap", "mirror", "reflect"):
        for order in (0, 1):
            got = nj.jit(
                lambda x, at, o=order, m=mode: nsp.ndimage.map_coordinates(x, at, o, m, 0.5)
            )(x, at)
            want = scipy.ndimage.map_coordinates(
                x, at, order=order, mode=names.get(mode, mode), cval=0.5
            )
            close(got, want, atol=1e-4)
    whole = np.arange(5)
    got = nsp.ndimage.map_coordinates(whole, [jnp.array([0.5, 1.5, 2.4, 9.0])], 1, cval=7)
    np.testing.assert_array_equal(got, [1, 2, 2, 7])
    assert got.dtype == jnp.int32
    slope = nj.grad(lambda at: nsp.ndimage.map_coordinates(x, at, 1, "nearest").sum())
    assert slope(jnp.array([[1.3], [2.2]])).shape == (2, 1)


def test_regular_grid() -> None:
    axes = np.array([0.0, 1.0, 3.0]), np.array([-1.0, 0.0, 0.5, 2.0])
    values = RNG.standard_normal((3, 4, 2))
    points = RNG.uniform(-2, 4, (30, 2))
    for method in ("linear", "nearest"):
        for fill in (np.nan, None, 7.0):
            args = {"method": method, "bounds_error": False, "fill_value": fill}
            ours = nsp.interpolate.RegularGridInterpolator(axes, values, **args)
            theirs = scipy.interpolate.RegularGridInterpolator(axes, values, **args)
            close(nj.jit(ours)(points), theirs(points), atol=1e-4)
    points[0, 1] = np.nan
    assert np.isnan(ours(points)[0]).all()
    with pytest.raises(ValueError, match="dimension"):
        ours(points[:, :1])


def test_trapezoid_and_vq() -> None:
    y, x = RNG.standard_normal((3, 4)), np.sort(RNG.standard_normal(3))
    close(nsp.integrate.trapezoid(y, x[:, None], axis=0), np.trapezoid(y, x[:, None], axis=0))
    close(nsp.integrate.trapezoid(y, dx=0.3), np.trapezoid(y, dx=0.3))
    observations, codes = RNG.standard_normal((20, 3)), RNG.standard_normal((4, 3))
    for a, b in ((observations, codes), (observations[:, 0], codes[:, 0])):
        got, want = nsp.cluster.vq.vq(a, b), scipy.cluster.vq.vq(a, b)
        np.testing.assert_array_equal(got[0], want[0])
        close(got[1], want[1])
    with pytest.raises(ValueError, match="rank"):
        nsp.cluster.vq.vq(observations, codes[0])


# ------------------------------------------------------------------ rotations
QUATERNIONS = RNG.standard_normal((12, 4))


def rows(rotation) -> np.ndarray:
    """Quaternions of one sign."""
    q = np.asarray(rotation.as_quat())
    return q * np.where(q[..., 3:] < 0, -1, 1)


@needs("scipy", "1.14")
def test_rotation_forms() -> None:
    ours = nsp.spatial.transform.Rotation.from_quat(QUATERNIONS)
    theirs = Theirs.from_quat(QUATERNIONS)
    for form in ("as_matrix", "as_rotvec", "as_mrp", "magnitude"):
        close(getattr(ours, form)(), getattr(theirs, form)())
    for form in ("matrix", "rotvec", "mrp"):
        source = getattr(theirs, f"as_{form}")()
        make = getattr(nsp.spatial.transform.Rotation, f"from_{form}")
        close(rows(make(source)), rows(theirs))
    close(
        ours.as_quat(canonical=True, scalar_first=True),
        theirs.as_quat(canonical=True, scalar_first=True),
    )
    vectors = RNG.standard_normal((12, 3))
    close(ours.apply(vectors), theirs.apply(vectors))
    close(ours.apply(vectors, inverse=True), theirs.apply(vectors, inverse=True))
    close(rows(ours * ours[3].inv()), rows(theirs * theirs[3].inv()))
    weights = np.arange(1.0, 13)
    close(rows(ours.mean(weights)), rows(theirs.mean(weights)))
    assert len(ours) == 12 and ours[2].single
    again = nj.jit(lambda r: r)(ours)
    assert isinstance(again, nsp.spatial.transform.Rotation)
    with pytest.raises(TypeError):
        len(ours[0])


@pytest.mark.parametrize("fixed", [True, False])
def test_euler_angles(fixed: bool) -> None:
    make = nsp.spatial.transform.Rotation.from_euler
    for seq in ("xyz", "zyx", "yxz", "zxz", "xyx", "yzy"):
        seq = seq if fixed else seq.upper()
        angles = RNG.uniform(-1.5, 1.5, (6, 3))
        close(rows(make(seq, angles)), rows(Theirs.from_euler(seq, angles)))
        rotations = Theirs.from_quat(QUATERNIONS)
        got = nsp.spatial.transform.Rotation.from_quat(QUATERNIONS).as_euler(seq, degrees=True)
        close(got, rotations.as_euler(seq, degrees=True), atol=2e-3)
        with nj.enable_x64(True), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            middle = 0.0 if seq[0] == seq[2] else np.pi / 2
            for m in (middle, np.pi - middle if middle == 0 else -middle):
                locked = np.array([0.3, m, 0.5])
                theirs = Theirs.from_euler(seq, locked)
                close(make(seq, locked).as_euler(seq), theirs.as_euler(seq), atol=1e-6)
    for bad in ("xxy", "xyZ", "abc"):
        with pytest.raises(ValueError):
            make(bad, angles)


def test_half_turns_keep_their_sign_and_one_rotation_has_no_mean() -> None:
    half = np.array([[-0.6, 0.8, 0.0, 0.0], [0.0, 0.0, -1.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    ours, theirs = nsp.spatial.transform.Rotation.from_quat(half), Theirs.from_quat(half)
    close(ours.as_rotvec(), np.pi * half[:, :3])
    close(ours.as_mrp(), half[:, :3])
    with pytest.raises(TypeError, match="no len"):
        ours[0].mean()
    close(ours[0].mean(jnp.ones(1)).as_matrix(), theirs[0].as_matrix())


def test_derivatives_of_rotations_at_none() -> None:
    turn = nsp.spatial.transform.Rotation.from_rotvec
    jacobian = nj.jacfwd(lambda v: turn(v).as_rotvec())(jnp.zeros(3))
    close(jacobian, np.eye(3))


def test_slerp() -> None:
    times, at = np.array([0.0, 1.0, 3.0, 4.0]), np.array([0.0, 0.3, 1.0, 2.5, 4.0])
    rotations = nsp.spatial.transform.Rotation.from_quat(QUATERNIONS[:4])
    ours = nsp.spatial.transform.Slerp.init(times, rotations)
    theirs = TheirSlerp(times, Theirs.from_quat(QUATERNIONS[:4]))
    close(ours(at).as_matrix(), theirs(at).as_matrix())
    close(nj.jit(lambda s, t: s(t))(ours, 0.3).as_matrix(), theirs(0.3).as_matrix())
    with pytest.raises(ValueError):
        nsp.spatial.transform.Slerp.init(times[:2], rotations)


def test_modules_say_what_is_there() -> None:
    for name in ("cluster", "fft", "integrate", "interpolate", "ndimage", "signal", "spatial"):
        assert name in dir(nsp)
        assert importlib.import_module(f"numjet.scipy.{name}")
