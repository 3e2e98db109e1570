"""What has to work in a chain, whoever it is made of: a raw client, and one function a check."""

import json
import os
import queue
import signal
import subprocess
import threading
import time

LIMIT = 20.0


class Failed(Exception):
    pass


def text(value):
    """JSON that tells 1 from 1.0 and keeps the order of members."""
    return json.dumps(value, ensure_ascii=False)


def same(what, got, expected):
    if text(got) != text(expected):
        raise Failed(f"{what}: {text(got)[:300]} instead of {text(expected)[:300]}")


class Client:
    """A program on pipes, in a process group of its own."""

    def __init__(self, command, log):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, start_new_session=True)
        self.lines = queue.Queue()
        self.next = 0
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))
        self.lines.put(None)

    def send(self, message):
        line = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False)
        try:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Failed("the chain does not read any more") from None

    def call(self, method, params, ident=None):
        if ident is None:
            self.next += 1
            ident = self.next
        self.send({"id": ident, "method": method, "params": params})
        return ident

    def notify(self, method, params):
        self.send({"method": method, "params": params})

    def receive(self, limit=LIMIT):
        try:
            message = self.lines.get(timeout=limit)
        except queue.Empty:
            raise Failed(f"nothing came within {limit:.0f} s") from None
        if message is None:
            raise Failed("the chain ended")
        return message

    def answer(self, ident, before=None):
        """The answer to `ident`; what comes before it goes into `before`, or is a fault."""
        while True:
            message = self.receive()
            if "method" not in message:
                if text(message.get("id")) == text(ident):
                    return message
                raise Failed(f"an answer to nothing: {text(message)[:300]}")
            if before is None:
                raise Failed(f"unexpected: {text(message)[:300]}")
            before.append(message)

    def prompt(self, session, words):
        return self.call("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": words}]})

    def gone(self, limit=LIMIT):
        """Waits until the program has ended and nothing of its group is left."""
        until = time.monotonic() + limit
        while time.monotonic() < until:
            if self.process.poll() is not None and not group(self.process.pid):
                return True
            time.sleep(0.02)
        return False

    def kill(self):
        """Ends what is left of it: children in groups of their own are ended by their parent."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


def group(leader):
    """Processes of this session: it has every descendant, also one in a group of its own."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as stat:
                    fields = stat.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[3]) == leader and fields[0] != "Z":
                found.append(int(entry))
    return found


INITIALIZE = {
    1: {"protocolVersion": 1, "clientCapabilities": {"xtra": {"deep": [1.0, None]}}, "unknown": {"a": [1, "ü"]},
        "_meta": {"k": 9007199254740993}},
    2: {"protocolVersion": 2, "info": {"name": "mixes", "version": "1", "xtra": 1.0}, "capabilities": {"xtra": {}},
        "unknown": {"a": [1, "ü"]}, "_meta": {"k": 9007199254740993}},
}


def initialize(client, version, _session):
    answer = client.answer(client.call("initialize", INITIALIZE[version]))
    result = answer.get("result")
    if not result:
        raise Failed(text(answer)[:400])
    same("version", result["protocolVersion"], version)
    same("what the agent saw", result["_meta"]["seen"], INITIALIZE[version])
    same("unknown member", result.get("more", "absent"), None)


def new_session(client, _version, _session):
    ident = client.call("session/new", {"cwd": "/", "mcpServers": [], "_meta": {"z": 1.0}})
    result = client.answer(ident).get("result", {})
    same("session/new", result, {"sessionId": "s1", "_meta": {"k": 1}, "more": [1.0]})


def stream(client, _version, session):
    before = []
    answer = client.answer(client.prompt(session, "stream 300"), before)
    same("stop reason", answer.get("result"), {"stopReason": "end_turn"})
    texts = [message["params"]["update"]["content"]["text"] for message in before]
    same("updates before the answer", texts, [str(n) for n in range(300)])


def permission(client, _version, session):
    ident = client.prompt(session, "ask")
    asked = client.receive()
    same("request", asked.get("method"), "session/request_permission")
    outcome = {"outcome": {"outcome": "selected", "optionId": "yes"}, "_meta": {"x": [2.0]}}
    client.send({"id": asked["id"], "result": outcome})
    before = []
    answer = client.answer(ident, before)
    same("stop reason", answer.get("result"), {"stopReason": "end_turn"})
    same("outcome", json.loads(before[0]["params"]["update"]["content"]["text"]), outcome)


def session_cancel(client, _version, session):
    ident = client.prompt(session, "wait")
    client.notify("session/cancel", {"sessionId": session})
    same("answer", client.answer(ident).get("result"), {"stopReason": "cancelled"})


def cancel_request(client, _version, session):
    for ident in (client.prompt(session, "wait"), client.call("_mix/wait", {}, "to \"cancel\"")):
        client.notify("$/cancel_request", {"requestId": ident})
        error = {"code": -32800, "message": "cancelled here", "data": {"by": "agent"}}
        same("answer", client.answer(ident).get("error"), error)


def errors(client, _version, _session):
    for error in (
        {"code": 4711, "message": "custom", "data": {"a": [1.0]}},
        {"code": -1, "message": ""},
        {"code": -32000, "message": "with null", "data": None},
    ):
        same("error", client.answer(client.call("_mix/fail", error)).get("error"), error)
    answer = client.answer(client.call("_mix/nobody", {"x": 1}))
    same("unknown method", answer.get("error"),
         {"code": -32601, "message": "Method not found", "data": "_mix/nobody"})


def shapes(client, _version, _session):
    for ident in (9007199254740993, "é\"\\", 0, -5):
        params = {"z": 1.0, "a": [9007199254740993, None, {}], "_meta": {"k": 1}}
        same("result", client.answer(client.call("_mix/echo", params, ident)).get("result"), params)
    answer = client.answer(client.call("_mix/null", {}))
    same("null result", "result" in answer and answer["result"], None)


def array_params(client, _version, _session):
    params = [1, None, "two", [1.5]]
    same("result", client.answer(client.call("_mix/echo", params)).get("result"), params)


def notifications(client, _version, _session):
    for n in range(20):
        client.notify("_mix/note", {"n": n, "_meta": {"k": n}})
    for n in range(20):
        same("notification", client.receive(), {"jsonrpc": "2.0", "method": "_mix/noted",
                                                "params": {"n": n, "_meta": {"k": n}}})


def back(client, _version, _session):
    for reply in ({"result": {"a": 1.0}}, {"result": None}, {"error": {"code": 815, "message": "m", "data": [1]}}):
        ident = client.call("_mix/back", {"q": [1.0]})
        asked = client.receive()
        same("request", (asked.get("method"), asked.get("params")), ("_mix/client", {"q": [1.0]}))
        client.send({"id": asked["id"], **reply})
        answer = client.answer(ident)
        same("what came back", {key: answer[key] for key in answer if key in reply}, reply)


def back_cancelled(client, _version, _session):
    ident = client.call("_mix/back_cancelled", {})
    asked = client.receive()
    same("request", asked.get("method"), "_mix/slow")
    told = client.receive()
    same("cancellation", (told.get("method"), told["params"]["requestId"]), ("$/cancel_request", asked["id"]))
    client.send({"id": asked["id"], "error": {"code": -32800, "message": "by the client"}})
    same("answer", client.answer(ident).get("error"), {"code": -32800, "message": "by the client"})


def ends(client, _version, _session):
    client.process.stdin.close()
    if not client.gone():
        raise Failed(f"left running: {group(client.process.pid)}")
    same("exit status", client.process.returncode, 0)


def refused(client, version, _session):
    params = {**INITIALIZE[version], "refuse": True}
    error = {"code": 4711, "message": "not today", "data": {"retry": [1]}}
    answer = client.answer(client.call("initialize", params)).get("error", {})
    same("error", {key: answer.get(key) for key in error}, error)


def tried_again(client, version, session):
    refused(client, version, session)
    initialize(client, version, session)


def death_is_told(client, version, session):
    initialize(client, version, session)
    new_session(client, version, session)
    answer = client.answer(client.prompt(session, "die"))
    if "error" not in answer:
        raise Failed(f"an answer of a dead agent: {text(answer)[:300]}")


def death_leaves_nothing(client, version, session):
    initialize(client, version, session)
    new_session(client, version, session)
    client.prompt(session, "die")
    client.process.stdin.close()
    if not client.gone():
        raise Failed(f"left running: {group(client.process.pid)}")


# In one chain, one after the other.
CONVERSATION = [initialize, new_session, stream, permission, session_cancel, cancel_request, errors, shapes,
                array_params, notifications, back, back_cancelled, ends]
# Each in a chain of its own.
ALONE = [refused, tried_again, death_is_told, death_leaves_nothing]


def run(command, version, log):
    """The names of the checks that failed, with what was wrong."""
    faults = {}
    client = Client(command, log)
    try:
        for check in CONVERSATION:
            if not attempt(check, client, version, faults):
                if check in (initialize, new_session) or client.process.poll() is not None:
                    break
                # What is late must not disturb the next one.
                settle(client)
    finally:
        client.kill()
    for check in ALONE:
        client = Client(command, log)
        try:
            attempt(check, client, version, faults)
        finally:
            client.kill()
    return faults


def attempt(check, client, version, faults):
    try:
        check(client, version, "s1")
    except (Failed, KeyError, TypeError, IndexError, json.JSONDecodeError) as error:
        faults[check.__name__] = str(error) if isinstance(error, Failed) else repr(error)
    return check.__name__ not in faults


def settle(client):
    while True:
        try:
            client.receive(0.5)
        except Failed:
            return
