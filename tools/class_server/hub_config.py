"""What a JupyterHub needs to know of the course; `book/class_server.md` says where it goes."""

from pathlib import Path

c = get_config()  # noqa: F821
c.Spawner.cmd = [str(Path(__file__).resolve().with_name("start_learner.sh"))]
c.Spawner.default_url = "/lab/tree/notebooks/00_start_here.ipynb"
# All checks of this machine wait here for their turn; the folder must be there, open to everybody.
c.Spawner.environment = {"HVDCOURSE_QUEUE": "/srv/hvdcourse-queue"}
# A class comes all at once: each server then takes longer to start than a single one.
c.Spawner.start_timeout = 300
c.Spawner.http_timeout = 300
