"""tools/ecosystem_programs/ecosystem_plugin.py: which tests a sample takes, and what it tells
of their time; what of the page stays."""

import sys
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

TOOLS = Path(__file__).resolve().parents[1] / "tools"
sys.path.insert(0, str(TOOLS))

import ecosystem  # noqa: E402
from ecosystem_programs import ecosystem_plugin  # noqa: E402


def chosen(names, count):
    items = [SimpleNamespace(nodeid=name) for name in names]
    gone = []
    config = SimpleNamespace(
        getoption={"--sample": count}.get,
        hook=SimpleNamespace(pytest_deselected=lambda items: gone.extend(items)),
    )
    # Items of pytest compare by identity and are hashable.
    items = [type("Item", (), vars(item))() for item in items]
    ecosystem_plugin.pytest_collection_modifyitems(config, items)
    assert len(items) + len(gone) == len(names) or not count
    return [item.nodeid for item in items]


def test_a_sample_is_the_same_in_every_environment_and_order():
    names = [f"env/site-packages/lib/a_test.py::test_{i}" for i in range(50)]
    some = chosen(names, 7)
    assert len(some) == 7 and some == [n for n in names if n in some]  # the order stays
    assert some != names[:7]
    assert sorted(some) == sorted(chosen(names[::-1], 7))
    other = chosen([name.replace("env", "another") for name in names], 7)
    assert [name.replace("another", "env") for name in other] == some
    assert chosen(names, 0) == names and chosen(names, 100) == names


def test_files_are_sampled_below_folders(tmp_path):
    for name in ("a_test.py", "deep/test_b.py", "deep/helper.py", "c_test.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    found = ecosystem.sampled_files([tmp_path], 9)
    assert sorted(f.name for f in found) == ["a_test.py", "c_test.py", "test_b.py"]
    assert ecosystem.sampled_files([tmp_path], 2) == found[:2]
    assert ecosystem.sampled_files([tmp_path / "a_test.py"], 2) == [tmp_path / "a_test.py"]


def test_processor_seconds_go_before_those_of_the_clock(tmp_path):
    suite = ElementTree.Element("testsuite")
    for name, seconds in ("measured", "0.25"), ("not measured", None):
        case = ElementTree.SubElement(suite, "testcase", classname="m", name=name, time="4.0")
        if seconds:
            told = ElementTree.SubElement(case, "properties")
            ElementTree.SubElement(told, "property", name="processor_seconds", value=seconds)
    ElementTree.ElementTree(suite).write(tmp_path / "report.xml")
    found = ecosystem.read(tmp_path / "report.xml")
    assert found == {"m::measured": ("passed", 0.25, ""), "m::not measured": ("passed", 4.0, "")}


def test_a_section_written_by_hand_stays():
    lines = ["# A", "", "## Other packages", "", "text", "", "## Tests that fail", "row"]
    kept = ecosystem.kept_section("## Other packages", lines)
    assert kept == lines[2:6] and ecosystem.kept_section("## None", lines) == []


def test_what_libraries_import_is_not_hidden_by_a_tool():
    """The folder that runs see holds the plugin and programs alone (numba imports `coverage`)."""
    seen = {path.stem for path in (TOOLS / "ecosystem_programs").glob("*.py")}
    assert "ecosystem_plugin" in seen
    assert all(name.endswith("_examples") for name in seen - {"ecosystem_plugin"})
