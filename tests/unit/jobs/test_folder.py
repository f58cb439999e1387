"""Links in a folder of work, which somebody else may have made."""

from pathlib import Path

import pytest

from raison.core.errors import DataError
from raison.jobs.folder import COMPARISON, LOCK, refuse_links, working_in, write_marker


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    (folder / "report").mkdir(parents=True)
    write_marker(folder, COMPARISON, {})
    return folder


@pytest.mark.parametrize("name", [LOCK, "explanations", "report/texts"])
def test_work_is_refused_where_a_link_leads_out(run: Path, tmp_path: Path, name: str) -> None:
    other = tmp_path / "other"
    (run / name).symlink_to(other)
    with (
        pytest.raises(DataError, match=rf"{name} is a link that leads out of .*run: put a copy"),
        working_in(run, COMPARISON),
    ):
        pass
    assert not other.exists()


def test_a_link_to_the_folder_and_links_inside_are_followed(run: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(run, target_is_directory=True)
    (run / "latest").symlink_to("report")
    with working_in(link, COMPARISON):
        pass
    refuse_links(link, "report")


def test_only_the_part_is_looked_at(run: Path, tmp_path: Path) -> None:
    (run / "explanations").symlink_to(tmp_path)
    refuse_links(run, "report")
    (run / "tables").symlink_to(tmp_path)
    with pytest.raises(DataError, match="tables is a link"):
        refuse_links(run, "tables")
