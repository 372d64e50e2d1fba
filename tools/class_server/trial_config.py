"""The hub of the trial: hub_config.py, and JupyterHub's own test authenticator and spawner."""

import os
from pathlib import Path

c = get_config()  # noqa: F821
load_subconfig(str(Path(__file__).with_name("hub_config.py")))  # noqa: F821

folder = Path(os.environ["TRIAL_FOLDER"])
port, hub_port, proxy_port = os.environ["TRIAL_PORTS"].split()
c.JupyterHub.bind_url = f"http://127.0.0.1:{port}"
c.JupyterHub.hub_bind_url = f"http://127.0.0.1:{hub_port}"
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{proxy_port}"
c.ConfigurableHTTPProxy.pid_file = str(folder / "proxy.pid")
c.JupyterHub.db_url = f"sqlite:///{folder}/hub.sqlite"
c.JupyterHub.cookie_secret_file = str(folder / "cookie_secret")
c.JupyterHub.authenticator_class = "dummy"
c.DummyAuthenticator.password = os.environ["TRIAL_PASSWORD"]
c.Authenticator.allow_all = True
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = f"{folder}/homes/{{username}}"
c.Spawner.args = [] if os.getuid() else ["--allow-root"]
c.Spawner.environment = {
    "HVDCOURSE_QUEUE": f"{folder}/queue",
    "PYTHONPATH": f"{folder}/course",
    "TMPDIR": f"{folder}/tmp",
}
