"""The real daemon as a process, asked over HTTP and conductorctl, and the one way to wait.

Black box: nothing here knows more than the documents say. A test that waits calls poll_until.
"""

import dataclasses
import json
import os
import select
import signal
import subprocess
import time
import urllib.error
import urllib.request

DAEMON = os.environ["CONDUCTOR_DAEMON"]
CTL = os.environ["CONDUCTORCTL"]

# A sanitizer build: its time and its memory say nothing about the product's.
INSTRUMENTED = bool(os.environ.get("CONDUCTOR_INSTRUMENTED"))
SLOWNESS = 10 if INSTRUMENTED else 1

DEADLINE_S = 30.0 * SLOWNESS  # generous: machines that run tests are busy
STOP_S = 10.0 * SLOWNESS
POLL_S = 0.01

PROFILE = {
    "strategy": "vllm_v1",
    "algorithm": "sha256_cbor",
    "python_hash_seed": "0",
    "index_projection": "low64_be",
}


def poll_until(condition, what, deadline_s=DEADLINE_S):
    """Returns the condition's first true value; fails when there is none before the deadline."""
    end = time.monotonic() + deadline_s
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"not within {deadline_s} s: {what}"
        select.select([], [], [], POLL_S)


@dataclasses.dataclass
class Answer:
    status: int
    headers: object
    body: object


class Daemon:
    """One data directory and, most of the time, the process that serves it."""

    def __init__(self, directory, log_level="INFO", **config):
        self.directory = str(directory)
        self.data_dir = os.path.join(self.directory, "data")
        self.log_path = os.path.join(self.directory, "daemon.log")
        self.config_path = os.path.join(self.directory, "conductor.json")
        self.log_level = log_level
        self.process = None
        self.ports = None
        os.makedirs(self.directory, exist_ok=True)
        settings = {"http_server_port": 0, "rpc_server_port": 0, "data_dir": self.data_dir}
        with open(self.config_path, "w") as file:
            json.dump({**settings, **config}, file)

    # --- process

    def launch(self):
        """Starts the process and waits for nothing."""
        assert self.process is None
        environment = dict(os.environ, CONDUCTOR_LOG_LEVEL=self.log_level)
        environment.pop("CONDUCTOR_CONFIG_PATH", None)
        environment.pop("CONDUCTOR_DATA_DIR", None)
        environment.pop("LD_PRELOAD", None)
        self.ports = None
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [DAEMON, "--config", self.config_path], env=environment, stdout=log, stderr=log
            )
        return self

    def listening(self):
        """The ports once this very process has bound them; a killed one leaves its file behind."""
        assert self.process.poll() is None, f"the daemon ended: {self.log()[-2000:]}"
        try:
            with open(os.path.join(self.data_dir, "ports.json")) as file:
                ports = json.load(file)
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        if ports["pid"] == self.process.pid:
            self.ports = ports
        return self.ports

    def start(self, ready=True):
        self.launch()
        poll_until(self.listening, "the daemon listens")
        if ready:
            self.wait_ready()
        return self

    def wait_ready(self):
        poll_until(lambda: self.get("/readyz").status == 200, "the daemon is ready")

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process = None

    def stop(self):
        """As an operator stops it: in good order, within the documented time."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=STOP_S)
        self.process = None
        assert code == 0, f"exit code {code}: {self.log()[-2000:]}"

    def restart(self):
        self.stop()
        return self.start()

    def signal(self, number):
        self.process.send_signal(number)

    def log(self):
        with open(self.log_path, errors="replace") as file:
            return file.read()

    def rss_bytes(self):
        if INSTRUMENTED:
            return 0
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    # --- HTTP

    def request(self, method, path, body=None, headers=None, timeout_s=DEADLINE_S):
        data = json.dumps(body).encode() if isinstance(body, (dict, list)) else body
        headers = {"Content-Type": "application/json", **(headers or {})}
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.ports['http_port']}{path}",
            data=data,
            method=method,
            headers={"Accept": "application/json", **headers},
        )
        try:
            with urllib.request.urlopen(request, timeout=timeout_s) as response:
                status, answer, text = response.status, response.headers, response.read()
        except urllib.error.HTTPError as error:
            status, answer, text = error.code, error.headers, error.read()
        is_json = "json" in answer.get("Content-Type", "")
        return Answer(status, answer, json.loads(text) if is_json else text.decode())

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def post(self, path, body, **more):
        return self.request("POST", path, body, **more)

    def ok(self, answer):
        assert answer.status == 200, f"{answer.status}: {answer.body}"
        return answer.body

    # --- registrations

    @staticmethod
    def registration(publisher=None, instance="i1", rank=0, **more):
        body = {
            "type": "vLLM",
            "modelname": "m",
            "instance_id": instance,
            "block_size": 4,
            "dp_rank": rank,
            "hash_profile": PROFILE,
        }
        if publisher is not None:
            body["endpoint"] = publisher.endpoint
            if publisher.has_replay:
                body["replay_endpoint"] = publisher.replay_endpoint
        return {**body, **more}

    def register(self, publisher, instance="i1", rank=0, wait=True, **more):
        """Registers and, when the publisher is up, waits until what it sends arrives."""
        before = publisher.subscribers()
        self.ok(self.post("/register", self.registration(publisher, instance, rank, **more)))
        if wait:
            publisher.wait_subscribed(before + 1)
        return self

    def unregister(self, instance="i1", rank=0, timeout_s=DEADLINE_S):
        body = {"instance_id": instance, "dp_rank": rank}
        return self.ok(self.post("/unregister", body, timeout_s=timeout_s))

    def services(self):
        return self.ok(self.get("/services?detail=1"))["services"]

    def service(self, instance="i1", rank=0):
        (found,) = [
            one
            for one in self.services()
            if (one["InstanceID"], one["DPRank"]) == (instance, rank)
        ]
        return found

    def counter(self, name, instance="i1", rank=0):
        return self.service(instance, rank)["Counters"][name]

    def wait_seq(self, seq, instance="i1", rank=0, deadline_s=DEADLINE_S):
        """Waits until everything up to this number is applied (or known to be lost)."""

        def arrived():
            last = self.service(instance, rank)["LastSeq"]
            return last is not None and last >= seq

        poll_until(arrived, f"{instance}|{rank} has applied {seq}", deadline_s)

    def wait_state(self, state, instance="i1", rank=0):
        poll_until(
            lambda: self.service(instance, rank)["StreamState"] == state,
            f"{instance}|{rank} is {state}",
        )

    # --- queries

    def ask(self, tokens, model="m", block_size=4, **more):
        return self.post(
            "/query", {"model": model, "block_size": block_size, "token_ids": tokens, **more}
        )

    def hits(self, tokens, **more):
        """Every instance's longest match."""
        instances = self.ok(self.ask(tokens, **more))["instances"]
        return {name: hits["longest_matched"] for name, hits in instances.items()}

    def matched(self, tokens, instance="i1", **more):
        return self.hits(tokens, **more).get(instance, 0)

    def wait_matched(self, count, tokens, instance="i1", deadline_s=DEADLINE_S, **more):
        poll_until(
            lambda: self.matched(tokens, instance, **more) == count,
            f"{instance} matches {count}",
            deadline_s,
        )

    def global_view(self):
        return self.ok(self.get("/global_view"))

    def metric(self, name):
        """The value of a metric without labels."""
        for line in self.get("/metrics").body.splitlines():
            if line.startswith(name + " "):
                return float(line.split()[1])
        raise AssertionError(f"no metric {name}")

    # --- conductorctl

    def ctl(self, *arguments, code=0):
        """The JSON answer of a conductorctl command that ends with this exit code."""
        command = [CTL, "--address", f"127.0.0.1:{self.ports['rpc_port']}", "-o", "json"]
        done = subprocess.run(
            [*command, *arguments], capture_output=True, text=True, timeout=DEADLINE_S
        )
        assert done.returncode == code, f"{arguments}: {done.returncode} {done.stdout}{done.stderr}"
        return json.loads(done.stdout) if done.stdout else None

    def status(self):
        return self.ctl("status")

    def verify(self):
        """The state of the running daemon is what its log alone gives."""
        assert self.ctl("verify")["match"] is True
