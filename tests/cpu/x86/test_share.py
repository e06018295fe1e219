"""Equal operations of a block are written once."""

from __future__ import annotations

from numjet.cpu.x86.share import share


def test_repeats_go_and_their_readers_read_the_first() -> None:
    body = [
        "%a = add i64 %x, 1", "%b = add i64 %x, 1", "%c = mul i64 %b, 8", "%d = mul i64 %a, 8",
        "%e = call i64 @llvm.smin.i64(i64 %c, i64 63)", "%f = call i64 @llvm.smin.i64(i64 %d, i64 "
        "63)", "store i64 %f, ptr %p, align 8", "ret void",
    ]  # fmt: skip
    assert share(body) == [
        "%a = add i64 %x, 1", "%c = mul i64 %a, 8",
        "%e = call i64 @llvm.smin.i64(i64 %c, i64 63)", "store i64 %e, ptr %p, align 8", "ret void",
    ]  # fmt: skip


def test_what_may_differ_stays() -> None:
    body = [
        "%a = load i64, ptr %p, align 8", "store i64 1, ptr %p, align 8",
        "%b = load i64, ptr %p, align 8", "%c = call i64 @f(i64 %a)", "%d = call i64 @f(i64 %a)",
        "%g = call <4 x i32> @llvm.masked.load.v4i32.p0(ptr %p, i32 4)",
        "%h = call <4 x i32> @llvm.masked.load.v4i32.p0(ptr %p, i32 4)", "br label %next", "next:",
        "%e = add i64 %a, %b", "br label %last", "last:", "%i = add i64 %a, %b", "ret void",
    ]  # fmt: skip
    assert share(body) == body


def test_what_a_loop_carries_is_renamed_before_its_definition() -> None:
    body = [
        "br label %loop", "loop:", "%i = phi i64 [ 0, %entry ], [ %k, %loop ]",
        "%j = add i64 %i, 1", "%k = add i64 %i, 1", "%m = icmp slt i64 %k, 9",
        "br i1 %m, label %loop, label %end",
    ]  # fmt: skip
    assert share(body)[2:5] == [
        "%i = phi i64 [ 0, %entry ], [ %j, %loop ]", "%j = add i64 %i, 1",
        "%m = icmp slt i64 %j, 9",
    ]  # fmt: skip
