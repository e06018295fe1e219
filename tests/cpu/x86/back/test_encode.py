"""Every instruction of the tables in all its forms, byte for byte as LLVM's assembler has it."""
from __future__ import annotations

import ctypes
import platform
import random
import re
import struct
import sys
from ctypes import byref, c_void_p

import pytest

from numjet.cpu.link import link
from numjet.cpu.x86.back import elf, encode, opcodes
from numjet.cpu.x86.back.encode import GPR, OPS, Code
from numjet.cpu.x86.front import types

pytestmark = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="LLVM assembles for its host alone"
)

FEATURES = ",".join(
    "+" + name
    for name in (
        "avx2", "fma", "bmi", "bmi2", "lzcnt", "popcnt", "f16c", "avx512f", "avx512vl", "avx512dq",
        "avx512bw", "avx512cd", "avx512vbmi", "avx512vbmi2", "avx512bitalg", "avx512vpopcntdq",
        "avx512vnni", "avx512bf16", "prfchw",
    )
)
R64 = "rax rcx rdx rbx rsp rbp rsi rdi r8 r9 r10 r11 r12 r13 r14 r15".split()
R32 = "eax ecx edx ebx esp ebp esi edi".split() + [f"r{i}d" for i in range(8, 16)]
R16 = "ax cx dx bx sp bp si di".split() + [f"r{i}w" for i in range(8, 16)]
R8 = "al cl dl bl spl bpl sil dil".split() + [f"r{i}b" for i in range(8, 16)]
SIZED = {8: R64, 4: R32, 2: R16, 1: R8}
POINTERS = {
    1: "byte", 2: "word", 4: "dword", 8: "qword", 16: "xmmword", 32: "ymmword", 64: "zmmword",
}

# name, operands, properties. Operands in the assembler's order, each a kind and the field that
# holds it: r reg, v vvvv, m r/m. Kinds: v a vector of the instruction's length, h q o of half,
# quarter, eighth; x y of 16, 32 bytes; k a mask; r R general registers of 32, 64 bits; i immediate;
# s for the field: the register stands in the immediate.
# Properties: the lengths there are, where not all; k results can be masked, z and zeroed; - r/m is
# never a register, = never memory.
ARITHMETIC = r"add|mul|sub|min|div|max|scalef|fn?m(add|sub)\d+"
SHAPES = [
    (rf"v({ARITHMETIC}|sqrt|getexp|rcp14|rsqrt14)s[sd]", "xr xv xm", "kz"),
    (rf"v({ARITHMETIC}|andn?|x?or|unpck[lh])p[sd]", "vr vv vm", "kz"),
    (r"v(getexp|rcp14|rsqrt14|sqrt)p[sd]|vmovs[hl]dup|vmovddup", "vr vm", "kz"),
    (r"v(rndscale|getmant|reduce|fixupimm|range)s[sd]", "xr xv xm i", "kz"),
    (r"v(rndscale|getmant|reduce)p[sd]", "vr vm i", "kz"),
    (r"v(fixupimm|range|shuf)p[sd]", "vr vv vm i", "kz"),
    (r"vfpclassp[sd]", "kr vm i", "k"),
    (r"vfpclasss[sd]", "kr xm i", "k"),
    (r"vcmpp[sd]|vpcmpu?[bwdq]", "kr vv vm i", "k"),
    (r"vcmps[sd]", "kr xv xm i", "k"),
    (r"vu?comis[sd]", "xr xm", ""),
    (r"vmov[ua]p[sd]|vmovdq[ua]\d+", "vr vm", "kz"),
    (r"(vmov[ua]p[sd]|vmovdq[ua]\d+)_s", "vm vr", "k-"),
    (r"vmovdq[ua]", "vr vm", ""),
    (r"vmovdq[ua]_s|vmovnt.*_s", "vm vr", "-"),
    (r"vmovntdqa", "vr vm", "-"),
    (r"vmovs[sd]", "xr xm", "kz-"),
    (r"vmovs[sd]", "xr xv xm", "kz="),
    (r"vmovs[sd]_s", "xm xr", "k-"),
    (r"vmovhlps|vmovlhps", "xr xv xm", "="),
    (r"vmov[lh]ps", "xr xv xm", "-"),
    (r"vmov[lh]ps_s|vmovq_s", "xm xr", "-"),
    (r"vmovd_r", "xr rm", ""),
    (r"vmovd_r_s", "rm xr", ""),
    (r"vmovq_r", "xr Rm", "="),
    (r"vmovq_r_s", "Rm xr", "="),
    (r"vmovq", "xr xm", ""),
    (r"vpadd[bwdq]|vpsub[bwdq]|vpmul.*|vpmadd.*|vp(add|sub)u?s[bw]", "vr vv vm", "kz"),
    (r"vp(min|max)[su][bwdq]|vp(andn?|x?or)[dq]", "vr vv vm", "kz"),
    (r"vpsadbw", "vr vv vm", ""),
    (r"vpabs[bwdq]|vplzcnt[dq]|vpopcnt[bwdq]", "vr vm", "kz"),
    (r"vpternlog[dq]|valign[dq]|vpalignr", "vr vv vm i", "kz"),
    (r"vps(ll|rl|ra)[wdq]i|vpro[lr][dq]i", "vv vm i", "kz"),
    (r"vps[lr]ldqi", "vv vm i", ""),
    (r"vps(ll|rl|ra)[wdq]", "vr vv xm", "kz"),
    (r"vps(ll|rl|ra)v[wdq]|vpro[lr]v[dq]", "vr vv vm", "kz"),
    (r"vptestn?m[bwdq]", "kr vv vm", "k"),
    (r"vpmovm2[bwdq]", "vr km", "="),
    (r"vpmov[bwdq]2m", "kr vm", "="),
    (r"vp?blendm(p[sd]|[bwdq])|vperm[bw]|vpermil.*_v|vperm[it]2.*", "vr vv vm", "kz"),
    (r"vperm(d|ps|q_v|pd_v)", "vr vv vm", "12kz"),
    (r"vperm(q|pd)", "vr vm i", "12kz"),
    (r"vpermilp[sd]|vpshuf(d|hw|lw)", "vr vm i", "kz"),
    (r"vpshufb|vpunpck.*|vpack.*|vcvtne2ps2bf16|vdpbf16ps|vpdpbusd", "vr vv vm", "kz"),
    (r"vshuf[fi].*", "vr vv vm i", "12kz"),
    (r"vinsert[fi](32x4|64x2)", "vr vv xm i", "12kz"),
    (r"vinsert[fi](32x8|64x4)", "vr vv ym i", "2kz"),
    (r"vextract[fi](32x4|64x2)_s", "xm vr i", "12kz"),
    (r"vextract[fi](32x8|64x4)_s", "ym vr i", "2kz"),
    (r"vinsertps", "xr xv xm i", ""),
    (r"vextractps_s|vpextr[bd]_s", "rm xr i", ""),
    (r"vpextrw_s", "rm xr i", "-"),
    (r"vpextrq_s", "Rm xr i", ""),
    (r"vpinsr[bwd]", "xr xv rm i", ""),
    (r"vpinsrq", "xr xv Rm i", ""),
    (r"vbroadcastss|vpbroadcast[bwdq]|vbroadcasti32x2", "vr xm", "kz"),
    (r"vbroadcast(sd|f32x2)", "vr xm", "12kz"),
    (r"vpbroadcast[bwd]_r", "vr rm", "kz="),
    (r"vpbroadcastq_r", "vr Rm", "kz="),
    (r"vbroadcast[fi](32x4|64x2)", "vr xm", "12kz-"),
    (r"vbroadcast[fi](32x8|64x4)", "vr ym", "2kz-"),
    (r"vp?compress.*_s", "vm vr", "kz"),
    (r"vp?expand.*", "vr vm", "kz"),
    (r"vcvt(u?dq2ps|t?ps2u?dq|u?qq2pd|tpd2u?qq)", "vr vm", "kz"),
    (r"vcvt(u?dq2pd|ps2pd|tps2u?qq|ph2ps)", "vr hm", "kz"),
    (r"vcvt(t?pd2u?dq|pd2ps|u?qq2ps|neps2bf16)", "hr vm", "kz"),
    (r"vcvtps2ph_s", "hm vr i", "kz"),
    (r"vcvts[sd]2s[sd]", "xr xv xm", "kz"),
    (r"vcvtu?si2s[sd]", "xr xv rm", ""),
    (r"vcvtu?si2s[sd]q", "xr xv Rm", ""),
    (r"vcvtt?s[sd]2u?si", "rr xm", ""),
    (r"vcvtt?s[sd]2u?siq", "Rr xm", ""),
    (r"vpmov[zs]x(bw|wd|dq)", "vr hm", "kz"),
    (r"vpmov[zs]x(bd|wq)", "vr qm", "kz"),
    (r"vpmov[zs]xbq", "vr om", "kz"),
    (r"vpmov(us|s)?(wb|dw|qd)_s", "hm vr", "kz"),
    (r"vpmov(us|s)?(db|qw)_s", "qm vr", "kz"),
    (r"vpmov(us|s)?qb_s", "om vr", "kz"),
    (r"vmovmskp[sd]|vpmovmskb", "rr vm", "01="),
    (r"vpblend[dw]|vblendp[sd]|vcmpp[sd]_y", "vr vv vm i", "01"),
    (r"vcmps[sd]_y|vrounds[sd]", "xr xv xm i", ""),
    (r"vroundp[sd]", "vr vm i", "01"),
    (r"vpcmp(eq|gt)[bwdq]_y", "vr vv vm", "01"),
    (r"vp?blendv(p[sd]|b)", "vr vv vm vs", "01"),
    (r"vmaskmovp[sd]", "vr vv vm", "01-"),
    (r"vmaskmovp[sd]_s", "vm vv vr", "01-"),
    (r"vperm2f128", "vr vv vm i", "1"),
    (r"vhaddp[sd]", "vr vv vm", "01"),
    (r"vptest", "vr vm", "01"),
    (r"kmov[bwdq]", "kr km", ""),
    (r"kmov[bwdq]_s", "km kr", "-"),
    (r"kmov[bwd]_r", "kr rm", "="),
    (r"kmovq_r", "kr Rm", "="),
    (r"kmov[bwd]_to_r", "rr km", "="),
    (r"kmovq_to_r", "Rr km", "="),
    (r"k(andn?|x?n?or|add)[bwdq]|kunpck..", "kr kv km", "="),
    (r"k(not|or?test|test)[bwdq]", "kr km", "="),
    (r"kshift[lr][bwdq]", "kr km i", "="),
    (r"(andn|mulx|pdep|pext)", "rr rv rm", ""),
    (r"(andn|mulx|pdep|pext)q", "Rr Rv Rm", ""),
    (r"bzhi|s[ha][lr]x", "rr rm rv", ""),
    (r"bzhiq|s[ha][lr]xq", "Rr Rm Rv", ""),
    (r"rorx", "rr rm i", ""),
    (r"rorxq", "Rr Rm i", ""),
]
# Registers of one group of vectors are below 8, 8 to 15 or above: LLVM's assembler swaps operands
# where that saves a byte, which mixed groups would show.
GROUPS = [range(8), range(8, 16), range(16, 32)]
# The same operation by another name in the VEX encoding.
VEX_NAMES = {
    "vinsertf32x4": "vinsertf128", "vinserti32x4": "vinserti128",
    "vextractf32x4": "vextractf128", "vextracti32x4": "vextracti128",
}


def assemble(lines: list[str]) -> bytes:
    """The bytes LLVM makes of assembly text in Intel's syntax."""
    text = 'target triple = "x86_64-unknown-linux-gnu"\nmodule asm ".intel_syntax noprefix"\n'
    text += "".join(f'module asm "{line}"\n' for line in lines)
    library = link._llvm()
    library.lib.LLVMPY_InitializeNativeAsmParser()
    error = c_void_p()
    triple = b"x86_64-unknown-linux-gnu"
    reference = library.lib.LLVMPY_GetTargetFromTriple(triple, byref(error))
    machine = library.lib.LLVMPY_CreateTargetMachine(
        reference, triple, b"x86-64", FEATURES.encode(), 1, b"pic", b"small", 0, 1, b""
    )
    try:
        return text_section(library.machine_code(machine, text))
    finally:
        library.lib.LLVMPY_DisposeTargetMachine(machine)


def text_section(image: bytes) -> bytes:
    (at,) = struct.unpack_from("<Q", image, 40)
    size, count, names = struct.unpack_from("<HHH", image, 58)
    headers = [struct.unpack_from("<IIQQQQ", image, at + size * i) for i in range(count)]
    start = headers[names][4]
    for name, _, _, _, offset, length in headers:
        if image[start + name :].startswith(b".text\0"):
            return image[offset : offset + length]
    raise AssertionError("no .text")


def compare(items: list[tuple[str, bytes]]) -> None:
    """Each item is an instruction's text and our bytes for it."""
    theirs, at = assemble([text for text, _ in items]), 0
    for text, ours in items:
        found = theirs[at : at + len(ours)]
        assert ours == found, f"{text}: {ours.hex(' ')} but LLVM {found.hex(' ')}"
        at += len(ours)
    assert at == len(theirs)


def address(rng: random.Random, unit: int, vector: str = "") -> tuple[str, tuple]:
    """A memory operand's text and arguments. vector: "xmm", ... for a vector of indices."""
    base, scale = rng.randrange(16), rng.choice([1, 2, 4, 8])
    index = rng.choice([i for i in range(16) if i != 4]) if rng.random() < 0.6 else None
    if vector:
        index = rng.randrange(32)
    disp = rng.choice([0, unit * 3, unit * 3 + 1, -unit, -128 * unit, 128 * unit, 70001, 127, 128])
    text = f"[{R64[base]}"
    if index is not None:
        text += f" + {scale}*{vector}{index}" if vector else f" + {scale}*{R64[index]}"
    return f"{text} + {disp}]", (base, index, scale, disp)


def assembler_name(op: encode.Op, vex: bool) -> str:
    name = re.sub(r"(_to_r|_r_s|_r|_s|_v|_y)$", "", op.name)
    if re.fullmatch(r"vps..(dq|[wdq])i|vpro.[dq]i|.*2s[sd]q|.*siq|(andn|mulx|bzhi|s..x|rorx|p...)q",
                    name):
        name = name[:-1]
    if vex:
        name = VEX_NAMES.get(name, re.sub(r"^(vp(?:andn?|x?or))[dq]$", r"\1", name))
    elif name in ("vmovdqu", "vmovdqa"):
        name += "32"
    return name


def register(kind: str, number: int, length: int) -> str:
    if kind in "rR":
        return (R32 if kind == "r" else R64)[number]
    if kind == "k":
        return f"k{number}"
    shift = {"v": 0, "h": 1, "q": 2, "o": 3}.get(kind)
    size = {"x": 0, "y": 1}[kind] if shift is None else max(length - shift, 0)
    return f"{'xyz'[size]}mm{number}"


def memory_bytes(op: encode.Op, length: int) -> int:
    if not op.only_vex:
        return op.units[length]
    if op.name[0] == "k":
        return {"b": 1, "w": 2, "d": 4, "q": 8}[op.name[4]]
    if op.name[0] != "v":
        return 8 if op.name.endswith("q") else 4
    if re.fullmatch(r"v(cmp|round)s[sd](_y)?", op.name):
        return 4 if "ss" in op.name else 8
    return 16 << length


def forms(op: encode.Op, shape: str, properties: str, rng: random.Random):
    """(text, bytes) of one op over lengths, register groups, masks and kinds of r/m."""
    lengths = [int(c) for c in properties if c in "012"] or [0, 1, 2]
    if op.fixed >= 0:
        lengths = [op.fixed]
    elif op.only_vex:
        lengths = [length for length in lengths if length < 2]
    groups = GROUPS if not op.only_vex else GROUPS[:2]
    sources = ["register"] * ("-" not in properties) + ["memory"] * ("=" not in properties)
    if op.element and "memory" in sources:
        sources.append("broadcast")
    for length in lengths:
        for group in groups:
            for source in sources:
                for mask in range(1 + properties.count("k") + properties.count("z")):
                    stored = source != "register" and shape.split()[0][1] == "m"
                    if not (mask == 2 and stored):
                        yield one(op, shape, rng, length, group, source, mask)


def one(op, shape, rng, length, group, source, mask):
    fields = {"r": 0, "v": 0, "m": 0}
    texts, memory, imm = [], (), None
    k = rng.randrange(1, 8) if mask else 0
    for operand in shape.split():
        if operand == "i":
            imm = rng.randrange(32)
            texts.append(str(imm))
            continue
        kind, field = operand
        if field == "m" and source != "register":
            unit = op.element if source == "broadcast" else memory_bytes(op, length)
            text, memory = address(rng, unit)
            whole = "compress" in op.name or "expand" in op.name
            text = f"{POINTERS[16 << length if whole else unit]} ptr {text}"
            if source == "broadcast":
                text += f"{{1to{op.units[length] // unit}}}"
        else:
            number = rng.randrange(16) if kind in "rR" else rng.choice(group)
            if field == "s":
                imm = number << 4
            else:
                fields[field] = number = number & 7 if kind == "k" else number
            text = register(kind, number, length)
        if k and not texts:
            text += f"{{k{k}}}" + "{z}" * (mask == 2)
        texts.append(text)
    vex = bool(op.vex3) and not k and (length < 2 or op.only_vex) and source != "broadcast"
    vex &= max(fields.values()) < 16 and (source == "register" or op.memory_vex)
    code = Code()
    options = {"k": k, "z": int(mask == 2), "length": length, "imm": imm}
    if source == "register":
        encode.rr(code, op, fields["r"], fields["v"], fields["m"], **options)
    else:
        options["broadcast"] = int(source == "broadcast")
        encode.rm(code, op, fields["r"], fields["v"], *memory, **options)
    return f"{assembler_name(op, vex)} {', '.join(texts)}", bytes(code.buffer)


@pytest.fixture(autouse=True)
def every_instruction():
    """Those of AVX-512 as well, which are refused while code for AVX2 is made."""
    types.use(64)


GATHERS = [name for name in opcodes.VECTOR if "gather" in name or "scatter" in name]


def test_vector_instructions():
    rng = random.Random(1)
    items = []
    for name in opcodes.VECTOR:
        matching = [shape for shape in SHAPES if re.fullmatch(shape[0], name)]
        assert bool(matching) != (name in GATHERS), name
        for _, shape, properties in matching:
            items += forms(OPS[name], shape, properties, rng)
    compare(items)


def test_gathers_and_scatters():
    rng = random.Random(2)
    items = []
    for name in [name for name in GATHERS if not name.endswith("_y")]:
        op, stored = OPS[name], name.endswith("_s")
        for length in (0, 1, 2):
            # Elements and indices of one size fill a vector each; of two sizes, the larger do.
            kind = re.sub(r"^vp?(gather|scatter)|_s$", "", name)
            index_shift = 1 if kind in ("dpd", "dq") else 0
            data_shift = 1 if kind in ("qps", "qd") else 0
            vector = "xyz"[max(length - index_shift, 0)] + "mm"
            data = "xyz"[max(length - data_shift, 0)] + "mm"
            text, memory = address(rng, op.units[0], vector)
            k = rng.randrange(1, 8)
            reg = (memory[1] + 1) % 32
            code = Code()
            encode.rm(code, op, reg, 0, *memory, k=k, length=length)
            operands = [f"{text}{{k{k}}}", f"{data}{reg}"] if stored else [
                f"{data}{reg}{{k{k}}}", text]
            items.append((f"{assembler_name(op, False)} {', '.join(operands)}", bytes(code.buffer)))
    compare(items)


def test_gathers_whose_masks_are_vectors():
    rng = random.Random(5)
    items = []
    for name in [name for name in GATHERS if name.endswith("_y")]:
        for length in (0, 1):
            vector = "xmm" if name.startswith("vgatherdpd") else "xy"[length] + "mm"
            data = "xmm" if name.startswith("vgatherqps") else "xy"[length] + "mm"
            for _ in range(4):
                reg, index, mask = rng.sample(range(16), 3)
                text, (base, _, scale, disp) = address(rng, 1)
                text = f"[{R64[base]} + {scale}*{vector}{index} + {disp}]"
                code = Code()
                encode.rm(code, OPS[name], reg, mask, base, index, scale, disp, length=length)
                line = f"{assembler_name(OPS[name], True)} {data}{reg}, {text}, {data}{mask}"
                items.append((line, bytes(code.buffer)))
    compare(items)


def test_vector_instructions_on_constants():
    rng = random.Random(3)
    items = []
    for name in ("vaddps", "vaddpd", "vmulss", "vfmadd231pd", "vpermt2d", "vpaddq"):
        for group in GROUPS:
            for length in (0, 1, 2):
                for broadcast in (False, True) if OPS[name].element else (False,):
                    op, code = OPS[name], Code()
                    length = op.fixed if op.fixed >= 0 else length
                    label = code.constant(rng.randbytes(64))
                    reg, vvvv = rng.choice(group), rng.choice(group)
                    encode.rip(code, op, reg, vvvv, label, length=length, broadcast=broadcast)
                    size = len(code.buffer)
                    text, places, _ = code.finish()
                    unit = op.element if broadcast else op.units[length]
                    wide = f"{{1to{op.units[length] // unit}}}" if broadcast else ""
                    mm = "xyz"[length] + "mm"
                    items.append((
                        f"{name} {mm}{reg}, {mm}{vvvv}, {POINTERS[unit]} ptr "
                        f"[rip + {places[label] - size}]{wide}", text[:size],
                    ))
    code = Code()
    label = code.constant(b"1234")
    encode.rip(code, OPS["vcmpps"], 3, 20, label, k=2, broadcast=1, imm=5)
    size = len(code.buffer)
    text, places, _ = code.finish()
    items.append((f"vcmpps k3{{k2}}, zmm20, dword ptr [rip + {places[label] - size}]{{1to16}}, 5",
                  text[:size]))
    compare(items)


# LLVM writes these on registers the other way round: see test_loads_and_stores_on_registers.
LOADS = "add or adc sbb and sub xor cmp mov".split()
ONE_OPERAND = "not neg mul imul1 div idiv inc dec".split()
IMMEDIATES = [2, -3, 127, 128, 1000]


def general_forms(name: str, rng: random.Random):
    """(text, bytes) of one general instruction."""
    op = GPR[name]
    sizes = [2, 4, 8] + [1] * bool(op.byte_form)
    base = re.sub(r"_(s|cl|r)$", "", name)
    mnemonic = base.replace("lock_", "lock ").replace("imul1", "imul")
    for size in sizes * 3:
        a, b = rng.randrange(16), rng.randrange(16)
        reg, other = SIZED[size][a], SIZED[size][b]
        text, memory = address(rng, 1)
        text = f"{POINTERS[size]} ptr {text}"
        imm = rng.choice(IMMEDIATES)
        imm = imm if size > 1 else max(min(imm, 127), -128)
        if name in ("movzx8", "movzx16", "movsx8", "movsx16", "movsxd"):
            narrow = {"8": 1, "6": 2, "d": 4}[name[-1]]
            if size > narrow:
                source = text.replace(POINTERS[size], POINTERS[narrow], 1)
                mnemonic = name.rstrip("0123456789")
                yield f"{mnemonic} {reg}, {SIZED[narrow][b]}", call(encode.gr, op, a, b, size)
                yield f"{mnemonic} {reg}, {source}", call(encode.gm, op, a, *memory, size=size)
        elif name.startswith("set"):
            yield f"{name} {R8[b]}", call(encode.gr, op, 0, b)
            yield f"{name} {text.replace(POINTERS[size], 'byte', 1)}", call(
                encode.gm, op, 0, *memory)
        elif name.startswith("prefetch"):
            yield f"{name} {text.replace(POINTERS[size], 'byte', 1)}", call(
                encode.gm, op, 0, *memory)
        elif name in ("call_r", "jmp_r"):
            yield f"{base} {R64[b]}", call(encode.gr, op, 0, b)
            yield f"{base} {text.replace(POINTERS[size], 'qword', 1)}", call(
                encode.gm, op, 0, *memory)
        elif name == "lea":
            yield f"lea {reg}, {text.split('ptr ')[1]}", call(
                encode.gm, op, a, *memory, size=size)
        elif name in ("shldi", "shrdi"):
            yield f"{name[:-1]} {other}, {reg}, 5", call(encode.gr, op, a, b, size, 5)
        elif name == "imuli":
            yield f"imul {reg}, {other}, {imm}", call(encode.gr, op, a, b, size, imm)
            yield f"imul {reg}, {text}, {imm}", call(
                encode.gm, op, a, *memory, size=size, imm=imm)
        elif op.immediate:
            imm = 3 if op.immediate == "i8" else imm
            mnemonic = base[:-1]
            if b or op.immediate == "i8" or -128 <= imm <= 127 and size > 1:
                # LLVM has shorter forms for the accumulator, and others for moves to registers.
                if name != "movi" and not (b == 0 and op.immediate == "iz"):
                    yield f"{mnemonic} {other}, {imm}", call(encode.gr, op, 0, b, size, imm)
            yield f"{mnemonic} {text}, {imm}", call(
                encode.gm, op, 0, *memory, size=size, imm=imm)
        elif name.endswith("_cl"):
            yield f"{mnemonic} {other}, cl", call(encode.gr, op, 0, b, size)
            yield f"{mnemonic} {text}, cl", call(encode.gm, op, 0, *memory, size=size)
        elif name in ONE_OPERAND:
            yield f"{mnemonic} {other}", call(encode.gr, op, 0, b, size)
            yield f"{mnemonic} {text}", call(encode.gm, op, 0, *memory, size=size)
        elif name.endswith("_s") or name in ("test", "xchg", "bt"):
            if not name.startswith("lock") and not (name == "xchg" and 0 in (a, b)):
                first, second = (reg, other) if name == "xchg" else (other, reg)
                yield f"{mnemonic} {first}, {second}", call(encode.gr, op, a, b, size)
            yield f"{mnemonic} {text}, {reg}", call(encode.gm, op, a, *memory, size=size)
        else:
            if name not in LOADS:
                yield f"{mnemonic} {reg}, {other}", call(encode.gr, op, a, b, size)
            yield f"{mnemonic} {reg}, {text}", call(encode.gm, op, a, *memory, size=size)


def call(function, *arguments, **options) -> bytes:
    code = Code()
    function(code, *arguments, **options)
    return bytes(code.buffer)


def test_general_instructions():
    rng = random.Random(4)
    items = []
    for name in opcodes.GENERAL:
        items += general_forms(name, rng)
    for reg in range(16):
        items.append((f"push {R64[reg]}", call(encode.push, reg)))
        items.append((f"pop {R64[reg]}", call(encode.pop, reg)))
        for value in (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF):
            items.append((f"mov {R32[reg]}, {value}", call(encode.move_constant, reg, value)))
        items.append((f"mov {R64[reg]}, -2", call(encode.move_constant, reg, -2)))
        for value in (1 << 32, -(1 << 40), 1 << 63):
            items.append((f"movabs {R64[reg]}, {value}", call(encode.move_constant, reg, value)))
    for name in ("ret", "cqo", "cdq", "vzeroupper"):
        items.append((name, getattr(encode, name.upper())))
    compare(items)


def test_loads_and_stores_on_registers():
    for name in LOADS:
        if name not in ("adc", "sbb"):
            stored = call(encode.gr, GPR[f"{name}_s"], 11, 2, 4)  # op edx, r11d
            loaded = call(encode.gr, GPR[name], 2, 11, 4)
            assert stored[0] == 0x44 and loaded[0] == 0x41  # REX.R, REX.B
            assert (stored[1], loaded[1]) == (GPR[name].opcode[0] - 2, GPR[name].opcode[0])
            assert stored[2] == 0xDA and loaded[2] == 0xD3


def test_jumps_take_the_shortest_form_that_reaches():
    for seed in range(20):
        rng = random.Random(seed)
        code, lines = Code(), []
        labels = [code.label() for _ in range(12)]
        for label in labels:
            code.place(label)
            lines.append(f"L{label}:")
            for _ in range(rng.randrange(4)):
                target = rng.choice(labels)
                condition = rng.choice([None, "call", *opcodes.CONDITIONS])
                if condition is None:
                    code.jump(target)
                    lines.append(f"jmp L{target}")
                elif condition == "call":
                    code.call(target)
                    lines.append(f"call L{target}")
                else:
                    code.jump_if(opcodes.CONDITIONS[condition], target)
                    lines.append(f"j{condition} L{target}")
                count = rng.choice([0, 1, 30, 60, 110])
                code.buffer += b"\x90" * count
                lines += ["nop"] * count
        assert code.finish()[0] == assemble(lines)


def test_places_of_labels_constants_and_padding():
    code = Code()
    code.buffer += encode.RET
    code.align(32)
    loop = code.label()
    code.place(loop)
    code.jump(loop)
    small, large = code.constant(b"abcd"), code.constant(bytes(range(64)))
    assert code.constant(b"abcd") == small
    slot = code.slot("nj_something")
    text, places, relocations = code.finish()
    assert places[loop] == 32 and text[32:34] == b"\xeb\xfe"
    assert places[large] % 64 == 0 and text[places[large] :][:64] == bytes(range(64))
    assert places[small] % 4 == 0 and text[places[small] :][:4] == b"abcd"
    assert relocations == [(places[slot], "nj_something")] and places[slot] % 8 == 0
    for count in range(40):
        padded = Code()
        padded.buffer += b"\x90" * (64 - count)
        padded.align(64)
        assert len(padded.finish()[0]) == 64


def test_an_unknown_instruction_is_an_error():
    with pytest.raises(KeyError, match="vaddpx"):
        OPS["vaddpx"]
    with pytest.raises(KeyError, match="ad"):
        GPR["ad"]


@pytest.mark.skipif(sys.platform != "linux", reason="the object is ELF")
def test_an_object_links_and_runs():
    code = Code()
    encode.gr(code, GPR["mov"], 0, 7)  # rax = the argument
    encode.grip(code, GPR["add"], 0, code.constant((40).to_bytes(8, "little")))
    code.buffer += encode.RET
    second = len(code.buffer)
    encode.gm(code, GPR["lea"], 4, 4, None, 1, -8)  # rsp -= 8: calls want it aligned
    code.call_symbol("nj_test_x86_add_one")
    encode.gm(code, GPR["lea"], 4, 4, None, 1, 8)
    code.buffer += encode.RET
    text, _, relocations = code.finish()

    @ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
    def add_one(x):
        return x + 1

    link.define_symbol("nj_test_x86_add_one", ctypes.cast(add_one, ctypes.c_void_p).value)
    exports = [("nj_test_x86_f", 0, second), ("nj_test_x86_g", second, len(text) - second)]
    library = link.load([elf.write(text, exports, relocations)])
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
    assert function(library.address("nj_test_x86_f"))(2) == 42
    assert function(library.address("nj_test_x86_g"))(2) == 3
