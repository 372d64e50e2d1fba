"""Verdicts for programs: whatever a rank has printed, the file can be read."""

from junitparser import JUnitXml

from hvdcourse.verdict import ExerciseVerdict, StepVerdict


def test_junit_takes_what_moves_a_terminals_cursor(tmp_path):
    step = StepVerdict(1, "It trains", False, "it ends", ["\x1b[A 50 % <done>\x00", "β"], "")
    verdict = ExerciseVerdict("lamb", "lamb.py", [step], None, 1.0, False)
    verdict.write_junit(tmp_path / "report.xml")
    (suite,) = JUnitXml.fromfile(str(tmp_path / "report.xml"))
    ((failure,),) = [case.result for case in suite]
    assert failure.text == "\ufffd[A 50 % <done>\ufffd\nβ"
